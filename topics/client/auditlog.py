"""The audit log of a server, as a program reads it: who did what, and whether anybody changed it since."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final

from topics.accountmodel import AuditEntry, AuditVerdict
from topics.client.accounttransport import AccountTransport
from topics.client.moment import moment_ms

AUDIT_PAGE: Final = 200
"""Lines asked for at once."""


class Audit:
    """The audit log of a server. Whoever uses this needs the scope admin."""

    def __init__(self, transport: AccountTransport) -> None:
        self._transport = transport

    async def search(
        self,
        text: str = "",
        *,
        action: str = "",
        name: str = "",
        who: str = "",
        outcome: str = "",
        since: datetime | int | None = None,
        until: datetime | int | None = None,
    ) -> AsyncIterator[AuditEntry]:
        """Lines that fit all that is asked for, the newest first.

            async for entry in client.audit.search(action="DELETE", who="ada@example.org"):
                print(entry.at, entry.action, entry.name)

        `text` is anywhere in a line, `action` a part of one; `name`, `who` and `outcome` are whole. `who` is an e-mail,
        or the name or id of a key. `since` and `until` are a `datetime` with a time zone or milliseconds since 1970.
        """
        given = {"text": text, "action": action, "name": name, "who": who, "outcome": outcome}
        wanted = {field: value for field, value in given.items() if value}
        for field, label, moment in (("from_ts", "since", since), ("to_ts", "until", until)):
            if moment is not None:
                wanted[field] = str(moment_ms(moment, label))
        cursor = ""
        while True:
            entries, cursor = await self._transport.audit(wanted, cursor=cursor, limit=AUDIT_PAGE)
            for entry in entries:
                yield entry
            if not cursor:
                return

    async def verify(self) -> AuditVerdict:
        """Follow the chain of hashes through all of it, and compare the files with the copy in the log."""
        return await self._transport.verify_audit()
