"""The audit log read: a page of what is looked for, the newest first, and whether the chain holds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from topics.core.auditchain import AUDIT_TOPIC, Link, follow, link_of
from topics.engine.engine import Engine
from topics.engine.host import Host
from topics.engine.opening import opener
from topics.errors import DirectoryLocked
from topics.server.audit import copied_lines
from topics.server.auditfile import AuditFile
from topics.settings import Settings
from topics.storage.fs import RealFs

WINDOW: Final = 500
"""Lines that are looked at between two turns of the loop."""
WINDOWS_MAX: Final = 40
"""Windows in one page; a search that has found too little by then goes on with the next page."""


@dataclass(frozen=True, slots=True)
class Search:
    """What a line must have; empty is anything."""

    action: str = ""
    name: str = ""
    who: str = ""
    """A user's e-mail, the name of a key, or its id."""
    outcome: str = ""
    text: str = ""
    """Anywhere in the line, in any case."""
    from_ms: int = 0
    to_ms: int = 0

    def finds(self, entry: dict[str, Any], line: bytes) -> bool:
        if self.action and self.action not in str(entry.get("action", "")):
            return False
        if self.name and self.name != entry.get("name"):
            return False
        if self.who and self.who not in (entry.get("who"), entry.get("key")):
            return False
        if self.outcome and self.outcome != entry.get("outcome"):
            return False
        at = entry.get("at", 0)
        if at < self.from_ms or (self.to_ms and at >= self.to_ms):
            return False
        return self.text.lower() in line.decode("utf-8", "replace").lower()


@dataclass(slots=True)
class Found:
    entries: list[dict[str, Any]] = field(default_factory=list)
    before_seq: int = 0
    """Where the next page goes on; 0 when there is no more."""


async def search(engine: Engine, wanted: Search, limit: int, before_seq: int = 0) -> Found:
    """The last lines that fit, the newest first; those before a seq of the topic only, unless it is 0."""
    found = Found()
    if engine.machine.topics.named(AUDIT_TOPIC) is None:
        return found
    state = engine.state(AUDIT_TOPIC)
    end = min(before_seq or state.head_seq + 1, state.head_seq + 1)
    for _ in range(WINDOWS_MAX):
        start = max(state.earliest_seq - 1, end - 1 - WINDOW, 0)
        lines = [(seq, line) for seq, line in copied_lines(engine, start, end - 1 - start or 1) if seq < end]
        for seq, line in reversed(lines):
            entry = msgspec.json.decode(line)
            if wanted.finds(entry, line):
                found.entries.append(entry)
                if len(found.entries) == limit:
                    found.before_seq = seq if seq > state.earliest_seq else 0
                    return found
        if start < state.earliest_seq:
            return found
        end = start + 1
        await asyncio.sleep(0)
    found.before_seq = end
    return found


# ---- the chain


@dataclass(slots=True)
class Verdict:
    line_count: int = 0
    first_seq: int = 0
    last: Link | None = None
    problem: str = ""
    """Where and why it does not hold; empty when it does."""
    hashes: dict[int, str] = field(default_factory=dict, repr=False)


def verify_files(files: AuditFile) -> Verdict:
    """Follow the chain through all files. Blocks, and may take seconds: for a thread."""
    verdict = Verdict()
    for path in files.files():
        lines = files.lines(path)
        links = [link for line in lines if (link := link_of(line)) is not None]
        verdict.hashes |= {link.seq: link.hash for link in links}
        if not verdict.first_seq and links:
            verdict.first_seq = links[0].seq
        last, broken = follow(lines, verdict.last)
        if broken is not None:
            verdict.line_count += broken.number - 1
            verdict.last = last
            verdict.problem = f"{path}, line {broken.number}: {broken.why}"
            return verdict
        verdict.line_count += len(lines)
        verdict.last = last
    return verdict


def compare(verdict: Verdict, copied: Iterable[Link | None]) -> None:
    """Compare the files with the copy in the topic; what the copy has, the files must have as well."""
    for link in copied:
        if link is None:
            verdict.problem = verdict.problem or f"the copy in {AUDIT_TOPIC} has a line that was changed"
        elif link.seq >= verdict.first_seq and verdict.hashes.get(link.seq) != link.hash:
            missing = "lacks" if link.seq not in verdict.hashes else "has another"
            verdict.problem = (
                verdict.problem or f"the file {missing} line {link.seq}, of which {AUDIT_TOPIC} has a copy"
            )


async def verify_directory(settings: Settings) -> tuple[Verdict, str]:
    """The same of a directory that no server has open; why the copy was not looked at, empty when it was.

    Without the copy the end of the chain may be missing unnoticed, so the files alone are no proof."""
    try:
        host = await Host.open(opener(settings))
    except DirectoryLocked:
        files = AuditFile(RealFs(), settings.data_dir)
        return await asyncio.to_thread(verify_files, files), "a server has the directory open: ask it, with --url"
    try:
        store = host.engine.store
        return await verify(host.engine, AuditFile(store.fs, store.directory)), ""
    finally:
        await host.close()


async def verify(engine: Engine, files: AuditFile) -> Verdict:
    verdict = await asyncio.to_thread(verify_files, files)
    if engine.machine.topics.named(AUDIT_TOPIC) is not None:
        at = 0
        while lines := copied_lines(engine, at, WINDOW):
            compare(verdict, (link_of(line) for _, line in lines))
            at = lines[-1][0]
            await asyncio.sleep(0)
    return verdict
