"""How a client reaches the accounts of a server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from topics.accountmodel import (
    AuditEntry,
    AuditVerdict,
    KeyState,
    NewKey,
    NewLink,
    SessionEnded,
    SessionState,
    UserDropped,
    UserState,
)


class AccountTransport(Protocol):
    async def create_key(self, fields: Mapping[str, object]) -> NewKey: ...

    async def keys(self) -> list[KeyState]: ...

    async def key(self, key_id: str) -> KeyState: ...

    async def revoke_key(self, key_id: str) -> KeyState: ...

    async def invite(self, email: str, role: str) -> NewLink: ...

    async def users(self) -> list[UserState]: ...

    async def user(self, who: str) -> UserState: ...

    async def change_user(self, who: str, fields: Mapping[str, object]) -> UserState:
        """Change what is named and nothing else."""

    async def new_link(self, who: str) -> NewLink: ...

    async def drop_user(self, who: str) -> UserDropped: ...

    async def sessions(self) -> list[SessionState]: ...

    async def end_session(self, session_id: str) -> SessionEnded: ...

    async def audit(self, wanted: Mapping[str, str], *, cursor: str, limit: int) -> tuple[list[AuditEntry], str]:
        """A page, the newest first, and the cursor of the next one, which is empty when there is none."""

    async def verify_audit(self) -> AuditVerdict: ...
