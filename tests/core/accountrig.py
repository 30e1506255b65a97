"""A machine with accounts, driven by hand."""

from __future__ import annotations

from typing import Any

from tests.core.rig import Rig
from topics.accountmodel import KeyState, Role, UserState
from topics.core.accountcommands import AddKey, AddUser, BeginSession, RefreshSession
from topics.core.accountfacts import SessionPut
from topics.core.machine import Machine
from topics.core.signins import Refreshed

HASH = "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaA"
LIFE_MS = 3_600_000
GRACE_MS = 10_000


class AccountRig(Rig):
    def user(self, user_id: str = "ada", role: Role = Role.ADMIN, password_hash: str = HASH, **more: Any) -> UserState:
        reply = self.step(AddUser(user_id, f"{user_id}@example.org", role, password_hash, **more)).reply
        assert isinstance(reply, UserState)
        return reply

    def key(self, key_id: str = "k1", **more: Any) -> KeyState:
        fields: dict[str, Any] = {"scopes": ("read",), "prefixes": (), "created_by": "ada"} | more
        reply = self.step(AddKey(key_id, fields.pop("name", "ci"), HASH, **fields)).reply
        assert isinstance(reply, KeyState)
        return reply

    def session(self, session_id: str = "s1", user_id: str = "ada") -> SessionPut:
        reply = self.step(BeginSession(session_id, user_id, LIFE_MS, "10.0.0.1", "browser")).reply
        assert isinstance(reply, SessionPut)
        return reply

    def refresh(self, session_id: str = "s1", generation: int = 0) -> Refreshed:
        reply = self.step(RefreshSession(session_id, generation, LIFE_MS, GRACE_MS)).reply
        assert isinstance(reply, Refreshed)
        return reply

    def all_accounts(self, machine: Machine | None = None) -> tuple[object, ...]:
        accounts = (machine or self.machine).accounts
        return dict(accounts.users), dict(accounts.keys), dict(accounts.sessions)

    def replayed_machine(self) -> Machine:
        """A machine that knows only what was stored."""
        machine = Machine()
        for fact in self.facts:
            machine.replay_meta(b"".join(fact.body))
        return machine
