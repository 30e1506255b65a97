"""The calls that Spark needs, over HTTP, blocking: tasks and Spark's planning are plain functions in short processes.

Nearly everything asked here may be asked twice: reads change nothing, staged records say at which place in their stage
they belong, and a publish or an abort is done once however often it is asked for. So whatever fails on the way, and
what a busy or starting server refuses for now, is tried again until the time is over. Statements may not: they are
tried again only when they did not reach the server, or it refused them.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import Event
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec
import pyarrow as pa

from topics.client.address import Address, parse_address
from topics.client.caller import was_refused
from topics.client.connection import Answer
from topics.client.refusal import refusal, retry_after_ms
from topics.client.remoteanswer import decoded
from topics.client.sqltransport import sql_body
from topics.clock import SystemClock
from topics.errors import ConnectionFailed, Forbidden, Throttled, TopicNotFound, Unavailable
from topics.limits import PAGE_SIZE_MAX, SECOND_MS, WAIT_MS_MAX
from topics.model import StageState

ARROW: Final = "application/vnd.apache.arrow.stream"
JSON: Final = "application/json"
_PAUSE_MS: Final = 50
_PAUSE_MS_MAX: Final = 2 * SECOND_MS
_CONNECT_S: Final = 10.0
"""How long an address that does not answer at all is waited for."""
_SILENCE_S: Final = (WAIT_MS_MAX + 30 * SECOND_MS) / SECOND_MS
"""A connection that says nothing for so long is given up; the longest wait is over before."""
_NS_PER_MS: Final = 1_000_000


class ArchiveProgress(msgspec.Struct, frozen=True):
    """How far an archive is, and where."""

    archive: str
    upto_seq: int
    location: str = ""


class PartitionState(msgspec.Struct, frozen=True):
    """One partition of a topic as it is now."""

    topic: str
    epoch: int
    head_seq: int
    earliest_seq: int
    count: int
    bytes: int
    type: str
    config: dict[str, Any]
    partition: int = 0
    partitions: int = 1
    archives: tuple[ArchiveProgress, ...] = ()


class Gap(msgspec.Struct, frozen=True):
    """Records that are not there any more, and why."""

    gap_from: int
    gap_to: int
    reason: str


class PageFacts(msgspec.Struct, frozen=True):
    """What a read says beside its records."""

    next_from_seq: int
    head_seq: int
    earliest_seq: int
    caught_up: bool
    epoch: int
    tombstone: Gap | None = None


class _Asker(msgspec.Struct):
    """Who asks, as the server sees it."""

    scopes: tuple[str, ...]


class _Listing(msgspec.Struct):
    topics: list[PartitionState]
    next_cursor: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """Records as an Arrow table, and the rest of the answer."""

    records: Any
    facts: PageFacts


class Server:
    """A server as tasks see it. Pickled, it is an address and a key; each process makes its own connection."""

    def __init__(self, url: str, key: str, timeout_ms: int) -> None:
        self._connection: HTTPConnection | None = None
        self._address = parse_address(url)
        self._key = key
        self._timeout_ms = timeout_ms

    def __repr__(self) -> str:
        return f"Server({self._address})"

    def __del__(self) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connection": None}

    def check_scopes(self, *needed: str) -> None:
        """Raise what is wrong with the address or the key; `Forbidden` when the key lacks one of these scopes."""
        held = decoded(self._ask("GET", "/v1/auth/me"), _Asker).scopes
        lacking = [scope for scope in needed if scope not in held]
        if lacking:
            raise Forbidden(
                f"this key lacks the scope {' and '.join(lacking)}, and this needs {' and '.join(needed)}",
                scope=lacking,
            )

    def state(self, topic: str, partition: int = 0) -> PartitionState:
        path = f"/v0/topics/{quote(topic)}?partition={partition}&touch=false"
        return msgspec.json.decode(self._ask("GET", path).body, type=PartitionState)

    def topics(self, prefix: str) -> list[PartitionState]:
        """Partition 0 of each topic whose name begins so."""
        found: list[PartitionState] = []
        cursor = ""
        while True:
            query = {"prefix": prefix, "page_size": PAGE_SIZE_MAX, "full": "true", "cursor": cursor}
            listing = msgspec.json.decode(self._ask("GET", f"/v0/topics?{urlencode(query)}").body, type=_Listing)
            found += listing.topics
            cursor = listing.next_cursor
            if not cursor:
                return found

    def read(self, topic: str, **wanted: Any) -> Page:
        """A page behind a cursor; `wanted` are the fields of a diff."""
        body = msgspec.json.encode(wanted)
        answer = self._ask("POST", f"/v0/topics/{quote(topic)}/diff", body, JSON, ARROW)
        facts = msgspec.json.decode(answer.headers["topics-page"], type=PageFacts)
        with pa.ipc.open_stream(pa.py_buffer(answer.body)) as reader:
            return Page(reader.read_all(), facts)

    def create(self, topic: str) -> None:
        """Make a topic with the usual config, unless there is one."""
        self._ask("PUT", f"/v0/topics/{quote(topic)}?if_missing=true", b"{}")

    def stage(self, stage: str, topic: str, partition: int, at: int, records: Any) -> StageState:
        """Add records, an Arrow table, to a stage that holds `at` of them."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, records.schema) as writer:
            writer.write_table(records)
        query = urlencode({"stage": stage, "partition": partition, "at": at})
        path = f"/v0/topics/{quote(topic)}/stage?{query}"
        return decoded(self._ask("POST", path, sink.getvalue().to_pybytes(), ARROW), StageState)

    def publish(self, stages: list[str], producer_id: str, epoch: int) -> bool:
        """Make the stages visible; whether that had been done already, and these stages are not needed."""
        body = {"stages": stages, "producer_id": producer_id, "epoch": epoch}
        answer = self._ask("POST", "/v0/publish", msgspec.json.encode(body))
        return bool(msgspec.json.decode(answer.body)["deduped"])

    def abort(self, stages: list[str]) -> None:
        self._ask("POST", "/v0/abort", msgspec.json.encode({"stages": stages}))

    def archived(self, topic: str, archive: str, upto_seq: int, location: str, partition: int, epoch: int) -> None:
        """Report that an archive has everything of a partition up to a seq."""
        body = {"upto_seq": upto_seq, "location": location, "partition": partition, "epoch": epoch}
        self._ask("PUT", f"/v0/topics/{quote(topic)}/archives/{quote(archive)}", msgspec.json.encode(body))

    def drop_archive(self, topic: str, archive: str) -> bool:
        """Forget an archive; whether there was one of that name."""
        answer = self._ask("DELETE", f"/v0/topics/{quote(topic)}/archives/{quote(archive)}")
        return bool(msgspec.json.decode(answer.body)["dropped"])

    def sql(self, text: str, values: Sequence[object]) -> bytes:
        """Run statements, each once; the body of the answer. Threads may do so at the same time."""
        alone = copy(self)
        try:
            return alone._ask("POST", "/v0/sql", sql_body(text, values), repeatable=False).body
        finally:
            alone.close()

    def query(self, text: str) -> Any:
        """The rows of one SELECT, as an Arrow table."""
        answer = self._ask("POST", "/v0/sql", sql_body(text, ()), JSON, ARROW)
        with pa.ipc.open_stream(pa.py_buffer(answer.body)) as reader:
            return reader.read_all()

    def is_there(self, topic: str) -> bool:
        try:
            self.state(topic)
        except TopicNotFound:
            return False
        return True

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        sends: str = JSON,
        accepts: str = JSON,
        repeatable: bool = True,
    ) -> Answer:
        """The answer, however many attempts it takes; what the server refuses for good is raised."""
        clock = SystemClock()
        deadline_ns = clock.ticks_ns() + self._timeout_ms * _NS_PER_MS
        pause_ms = _PAUSE_MS
        while True:
            error: ConnectionFailed | Throttled | Unavailable
            asked_ms = 0
            sent = False
            try:
                connection = self._connected(fresh=not repeatable)
                sent = True
                answer = self._exchange(connection, method, path, body, sends, accepts)
                if answer.status < 300:
                    return answer
                refused = refusal(answer)
                if not isinstance(refused, Throttled | Unavailable) or not (repeatable or was_refused(refused)):
                    raise refused
                error, asked_ms = refused, retry_after_ms(answer, refused)
            except (OSError, HTTPException) as failure:
                self.close()
                error = ConnectionFailed(f"{self._address} cannot be asked: {failure or type(failure).__name__}")
                if sent and not repeatable:
                    raise _unanswered(self._address, failure) from failure
            if clock.ticks_ns() >= deadline_ns:
                raise error
            Event().wait(min(max(pause_ms, asked_ms), _PAUSE_MS_MAX) / SECOND_MS)
            pause_ms = min(2 * pause_ms, _PAUSE_MS_MAX)

    def _connected(self, fresh: bool) -> HTTPConnection:
        """A connection that is open, as far as one can know; what idled may have been closed at the other end."""
        if fresh:
            self.close()
        if self._connection is None:
            kind = HTTPSConnection if self._address.tls else HTTPConnection
            self._connection = kind(self._address.host, self._address.port, timeout=_CONNECT_S)
            self._connection.connect()
            self._connection.timeout = _SILENCE_S
            self._connection.sock.settimeout(_SILENCE_S)
        return self._connection

    def _exchange(
        self, connection: HTTPConnection, method: str, path: str, body: bytes, sends: str, accepts: str
    ) -> Answer:
        headers = {"Accept": accepts}
        if body:
            headers["Content-Type"] = sends
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        connection.request(method, self._address.path + path, body or None, headers)
        response = connection.getresponse()
        content = response.read()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, content)


def _unanswered(address: Address, failure: Exception) -> ConnectionFailed:
    return ConnectionFailed(
        f"{address} did not answer, and may have done what was asked: {failure or type(failure).__name__}; "
        "look before you ask again (SHOW TOPICS, SHOW GROUPS, DESCRIBE TOPIC)",
        sent=True,
    )
