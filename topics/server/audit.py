"""The audit log: who did what to whom, as a chain of JSON lines in `audit/audit.jsonl` and in the topic `_audit`.

A line `begun` is on the disk before the deed begins, so that nothing is done without one, and a second line says what
became of it: `done`, or the code of the error. A crash between the two leaves the first one alone. Lines of the same
moment are written together, on a thread, so that the loop never waits for the disk. An audit that cannot be written
refuses the deed. Second lines, and the first ones of what programs do often (`carry_out` with `syncs=False`), are
written and not synced: the death of the process loses none, a power cut those of the last second.

    {"seq":7,"at":1748467205000,"action":"delete_heap","name":"jobs","key":"key-1","who":"","over":"http",
     "outcome":"begun","request_id":"…","address":"10.0.0.7","detail":{},"previous":"…","hash":"…"}

The file is the truth, and the topic is a copy that follows within a second (`mirror`) and is in backups. After a crash
one may be behind the other: at the start whichever is behind is completed from the other, as far as the chains fit.
Where they do not fit, somebody has changed one of them: nothing is overwritten, the server's log and `topics audit
verify` say so, and the file goes on.

Failures that anybody can cause, wrong keys and passwords, are written up to a rate; what is left out is counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from topics.clock import Clock
from topics.core.accountcommands import OpenAudit
from topics.core.auditchain import AUDIT_TOPIC, FIRST_PREVIOUS, Link, follow, forge, link_of
from topics.core.commands import Append
from topics.core.names import shorten
from topics.core.records import RecordLimits, Records
from topics.engine.engine import Engine
from topics.engine.host import Host
from topics.errors import Internal, TopicsError, Unavailable
from topics.limits import SECOND_MS
from topics.server.auditfile import AuditFile
from topics.server.logs import fields
from topics.storage.fs import FileSystem

BEGUN: Final = "begun"
DONE: Final = "done"
MIRRORED_MAX: Final = 500
"""Lines that go into the topic at a time."""
FAILURES_PER_MINUTE: Final = 20
FAILURE_NAMES_MAX: Final = 1000
FAILURE_WINDOW_MS: Final = 60 * SECOND_MS
ALL_FAILURES_PER_MINUTE: Final = 600

log = logging.getLogger(__name__)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Waiting:
    entry: dict[str, Any] | None
    """None asks for a sync alone."""
    written: asyncio.Future[None]
    syncs: bool


@dataclass(slots=True)
class _Window:
    began_ms: int
    count: int = 0
    left_out: int = 0


class Audit:
    def __init__(self, fs: FileSystem, data_dir: str, clock: Clock, host: Host | None = None) -> None:
        self._file = AuditFile(fs, data_dir)
        self._clock = clock
        self._host = host
        self._last: Link | None = None
        self._opened = False
        self._waiting: list[_Waiting] = []
        self._writing: asyncio.Task[None] | None = None
        self._unmirrored: list[bytes] = []
        self._mirroring = asyncio.Lock()
        self._windows: OrderedDict[tuple[str, str], _Window] = OrderedDict()
        self._all_failures = _Window(0)

    # ---- lines

    async def note(self, action: str, name: str, *, outcome: str = BEGUN, syncs: bool = True, **line: Any) -> None:
        """Returns when the line is on the disk, or written at least; raises `Unavailable` when it cannot get there."""
        try:
            await self._put(action, name, outcome, syncs, **line)
        except OSError as error:
            raise Unavailable(
                f"{action} of {shorten(name)} was not begun: it has to be noted in {self._file.path} first, and that "
                f"failed ({error.strerror}); see to the disk and ask again",
                file=self._file.path,
            ) from error

    async def carry_out(
        self,
        action: str,
        name: str,
        work: Callable[[], Awaitable[T]],
        *,
        told: Mapping[str, object] | None = None,
        outcome_of: Callable[[T], str] = lambda _: DONE,
        syncs: bool = True,
        **line: Any,
    ) -> T:
        """Do something between its two lines. `told` is what the work has to say by its end, for the second one;
        `outcome_of` reads the outcome out of the result, empty for none."""
        await self.note(action, name, syncs=syncs, **line)
        try:
            result = await work()
        except TopicsError as error:
            await asyncio.wait({self.conclude(action, name, error.code, **line)})
            raise
        except Exception:
            await asyncio.wait({self.conclude(action, name, Internal.code, **line)})
            raise
        if outcome := outcome_of(result):
            self.conclude(action, name, outcome, **line, **(told or {}))
        return result

    def conclude(self, action: str, name: str, outcome: str, **line: Any) -> asyncio.Future[None]:
        """The second line: what is done is done, whether or not it can be written."""

        def ended(written: asyncio.Future[None]) -> None:
            if not written.cancelled() and (error := written.exception()) is not None:
                told = fields(action=action, name=shorten(name), outcome=outcome, why=error)
                log.error("a line of the audit log could not be written", extra=told)

        written = self._put(action, name, outcome, False, **line)
        written.add_done_callback(ended)
        return written

    def _put(
        self,
        action: str,
        name: str,
        outcome: str,
        syncs: bool,
        *,
        key: str,
        over: str,
        who: str = "",
        request_id: str = "",
        address: str = "",
        detail: Mapping[str, object] | None = None,
        **more: object,
    ) -> asyncio.Future[None]:
        """Done when the line is written, and on the disk if it syncs."""
        entry = {
            "at": self._clock.now_ms(),
            "action": action,
            "name": name,
            "key": key,
            "who": who,
            "over": over,
            "outcome": outcome,
            "request_id": request_id,
            "address": address,
            "detail": {**(detail or {}), **more},
        }
        return self._enqueue(entry, syncs)

    def _enqueue(self, entry: dict[str, Any] | None, syncs: bool) -> asyncio.Future[None]:
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(entry, written, syncs))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        return written

    async def note_failure(self, action: str, name: str, *, over: str, outcome: str, address: str, **rest: Any) -> None:
        """Something that anybody can cause. Of too many, only how many there were is written."""
        now_ms = self._clock.now_ms()
        window = self._window((action, address), now_ms)
        everybody = self._all_failures
        if now_ms - everybody.began_ms >= FAILURE_WINDOW_MS:
            everybody = self._all_failures = _Window(now_ms)
        if window.count >= FAILURES_PER_MINUTE or everybody.count >= ALL_FAILURES_PER_MINUTE:
            window.left_out += 1
            return
        window.count += 1
        everybody.count += 1
        detail: dict[str, Any] = {"left_out": window.left_out} if window.left_out else {}
        window.left_out = 0
        key = rest.pop("key", "")
        shown = shorten(name)
        await self.note(action, shown, key=key, over=over, outcome=outcome, address=address, **rest, **detail)

    def _window(self, name: tuple[str, str], now_ms: int) -> _Window:
        window = self._windows.pop(name, None) or _Window(now_ms)
        if now_ms - window.began_ms >= FAILURE_WINDOW_MS:
            window = _Window(now_ms, left_out=window.left_out)
        self._windows[name] = window
        if len(self._windows) > FAILURE_NAMES_MAX:
            self._windows.popitem(last=False)
        return window

    async def _write(self) -> None:
        """Write what waits, until nothing does."""
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                try:
                    if not self._opened:
                        await loop.run_in_executor(None, self._open)
                    lines, last = self._forged([each.entry for each in batch if each.entry is not None])
                    first_seq = last.seq - len(lines) + 1
                    syncs = any(each.syncs for each in batch)
                    work = partial(self._file.append, first_seq, lines, syncs) if lines else self._file.sync
                    await loop.run_in_executor(None, work)
                except Exception as error:
                    _finish(batch, error)
                else:
                    self._last = last if lines else self._last
                    self._unmirrored += lines
                    _finish(batch, None)
        finally:
            self._writing = None

    def _forged(self, entries: list[dict[str, Any]]) -> tuple[list[bytes], Link]:
        last = self._last or Link(0, "", FIRST_PREVIOUS)
        lines = []
        for entry in entries:
            line, digest = forge(entry, last.seq + 1, last.hash)
            last = Link(last.seq + 1, last.hash, digest)
            lines.append(line)
        return lines, last

    def _open(self) -> None:
        last, torn_bytes = self._file.open()
        if torn_bytes:
            log.warning("a line of the audit log was cut off", extra=fields(file=self._file.path, bytes=torn_bytes))
        self._last = self._last or last
        self._opened = True

    # ---- the copy in the log

    async def start(self) -> None:
        """Bring the file and the topic together again, after a crash or a restore."""
        assert self._host is not None
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._open)
        copied = last_copied(self._host.engine)
        file_last = self._last
        if copied is None or (file_last is not None and file_last.seq > copied.seq):
            behind = await loop.run_in_executor(None, self._file.lines_after, 0 if copied is None else copied.seq)
            if follow(behind, copied)[1] is None:
                self._unmirrored = behind + self._unmirrored
            else:
                _complain(self._file.path)
        elif file_last is None or file_last.seq < copied.seq:
            missing = _copied_after(self._host.engine, 0 if file_last is None else file_last.seq)
            last, broken = follow(missing, file_last)
            if broken is None and last is not None:
                await loop.run_in_executor(None, self._file.append, last.seq - len(missing) + 1, missing)
                self._last = last
            else:
                _complain(self._file.path)
        elif file_last.hash != copied.hash:
            _complain(self._file.path)

    async def mirror(self) -> None:
        """Copy what the file has and the topic has not."""
        host = self._host
        if host is None or not self._unmirrored:
            return
        async with self._mirroring:
            try:
                # The copy is never ahead of the file.
                await self._enqueue(None, True)
                await host.submit(OpenAudit())
                while self._unmirrored:
                    lines = self._unmirrored[:MIRRORED_MAX]
                    records = Records.check(list(lines), limits=RecordLimits())
                    await host.submit(Append(AUDIT_TOPIC, records))
                    del self._unmirrored[: len(lines)]
            except (TopicsError, OSError) as error:
                # The file has them, and the next start brings the topic up to it.
                log.warning("the copy of the audit log is behind", extra=fields(lines=len(self._unmirrored), why=error))

    async def settle(self) -> None:
        """Returns when all that was noted before is in the file, and in the topic."""
        if self._writing is not None:
            await asyncio.wait({self._writing})
        await self.mirror()

    async def close(self) -> None:
        await self.settle()
        await asyncio.get_running_loop().run_in_executor(None, self._file.close)


def last_copied(engine: Engine) -> Link | None:
    """The last line that the topic holds."""
    if engine.machine.topics.get(AUDIT_TOPIC) is None:
        return None
    lines = copied_lines(engine, engine.state(AUDIT_TOPIC).head_seq - 1, 1)
    return link_of(lines[-1][1]) if lines else None


def copied_lines(engine: Engine, from_seq: int, limit: int) -> list[tuple[int, bytes]]:
    """Up to so many lines of the topic behind a seq, each with its own."""
    page = engine.read(AUDIT_TOPIC, max(0, from_seq), limit=limit, limit_max=limit, touch=False)
    records = _records_decoder.decode(b"[" + page.body + b"]")
    return [(record.seq, bytes(record.data)) for record in records]


def _copied_after(engine: Engine, seq: int) -> list[bytes]:
    """The lines of the topic whose number is above `seq`."""
    found: list[bytes] = []
    at = 0
    while lines := copied_lines(engine, at, MIRRORED_MAX):
        found += [line for _, line in lines if (link := link_of(line)) is not None and link.seq > seq]
        at = lines[-1][0]
    return found


class _Copied(msgspec.Struct):
    data: msgspec.Raw
    seq: int = msgspec.field(name="$seq")


_records_decoder = msgspec.json.Decoder(list[_Copied])


def _finish(batch: list[_Waiting], error: Exception | None) -> None:
    for written in (each.written for each in batch):
        if written.done():
            continue
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(error)


def _complain(path: str) -> None:
    log.error(
        "the audit log and its copy do not fit: one of them was changed; see `topics audit verify`",
        extra=fields(file=path, topic=AUDIT_TOPIC),
    )
