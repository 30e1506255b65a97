"""A naive model of what a log promises, to hold an implementation against. `oracletopics.py` has the topics around it.

It is written from the specification alone and has no idea how anything is stored: lists, loops over everything, no
index, no cleverness. Where the oracle and an engine disagree, one of the two is wrong about the specification.

A log is a list of items, one for every seq ever assigned. An item is live, or gone in one of three ways:

    deleted   somebody asked for it: silent
    evicted   by a cap or the TTL, while it was live: below it, a reader is told
    skipped   assigned, perhaps acked, and not there after a restart: a reader is told where the seqs would have come

Floors, counts, pages and tombstones are computed from the items whenever they are asked for.

Every change is also kept as an operation. A crash may leave of a log what some prefix of its operations made, and
nothing else; the prefix holds at least what the log's durability class promised. `OracleLog.explain` finds the prefix
that fits what was recovered, or says why none does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import msgspec

from topics.core.dedupe import DedupeKey, IdempotencyKey
from topics.errors import ProducerFenced, RecordTooLarge, TopicFull
from topics.limits import PRODUCER_WINDOW_MS
from topics.model import Discard, Durability, Reason, Record, Tombstone, TopicConfig

Draft = Mapping[str, Any]
"""A record as a producer gives it: `data` and, if wanted, `tag`, `node` and `meta`."""

Predicate = Sequence[str]
"""`["tag", "Eq", "x"]` or `["tag", "Glob", "x*"]`."""


class Fate(Enum):
    LIVE = auto()
    DELETED = auto()
    EVICTED = auto()
    SKIPPED = auto()


@dataclass(slots=True)
class Item:
    """One seq and what became of it. `record` carries its tag; `size` is the bytes of data and meta."""

    record: Record
    size: int
    fate: Fate = Fate.LIVE
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class View:
    """The numbers of a log that anybody can see."""

    head_seq: int
    earliest_seq: int
    evict_floor: int
    count: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What a read must return; its records carry their tags."""

    records: list[Record]
    tombstone: Tombstone | None
    next_from_seq: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a write must answer."""

    first_seq: int
    last_seq: int
    deduped: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One change of a log, as it was asked for."""

    verb: str
    arguments: tuple[Any, ...]
    volatile: bool
    """Made while the log was ephemeral: its records are gone with the process."""


def matches(predicate: Predicate, tag: str | None) -> bool:
    """Whether a tag matches; no tag never does."""
    _, operator, text = predicate
    if not tag:
        return False
    return tag == text if operator == "Eq" else tag.startswith(text.removesuffix("*"))


def payload_bytes(draft: Draft) -> int:
    """The size of a record as all limits count it: its data and meta as they come in."""
    meta = draft.get("meta")
    return len(msgspec.json.encode(draft["data"])) + (len(msgspec.json.encode(meta)) if meta is not None else 0)


class OracleLog:
    """One partition of a topic. Everything takes the time it happens at, and TTL acts before anything else does."""

    def __init__(self, config: TopicConfig | None = None) -> None:
        self.items: list[Item] = []
        self.operations: list[Operation] = []
        self.acked_operations = 0
        self.promised_operations = 0
        self._first_config = self.config = config or TopicConfig()
        self._keys: dict[str, tuple[Receipt, int]] = {}
        self._producers: dict[str, tuple[int, dict[int, tuple[Receipt, int]]]] = {}

    # ---- what can be seen

    @property
    def head_seq(self) -> int:
        return len(self.items)

    @property
    def live(self) -> list[Item]:
        return [item for item in self.items if item.fate is Fate.LIVE]

    @property
    def earliest_seq(self) -> int:
        """The first live seq, or the one behind the head."""
        return min((item.record.seq for item in self.live), default=self.head_seq + 1)

    @property
    def evict_floor(self) -> int:
        """The seq behind the last one that a cap or the TTL took."""
        return 1 + max((item.record.seq for item in self.items if item.fate is Fate.EVICTED), default=0)

    def view(self, now_ms: int) -> View:
        self.expire(now_ms)
        live = self.live
        size = sum(item.size for item in live)
        return View(self.head_seq, self.earliest_seq, self.evict_floor, len(live), size)

    def read(
        self,
        from_seq: int,
        now_ms: int,
        limit: int,
        byte_budget: int,
        nodes: Collection[str] = (),
        match: Predicate | None = None,
    ) -> Answer:
        """The page behind a cursor: at most one tombstone, then a window of live records, then the reader's filters.

        The window has at most `limit` records and `byte_budget` payload bytes, but at least one record, and ends
        before skipped seqs. The cursor moves to the last record of a full window, and otherwise as far as was looked.
        """
        self.expire(now_ms)
        tombstone, start = self._gap(from_seq)
        window: list[Item] = []
        used_bytes = 0
        reached = start - 1
        for item in self.items[start - 1 :]:
            if len(window) == limit or (window and used_bytes >= byte_budget) or item.fate is Fate.SKIPPED:
                break
            if item.fate is Fate.LIVE:
                if window and used_bytes + item.size > byte_budget:
                    reached = window[-1].record.seq
                    break
                window.append(item)
                used_bytes += item.size
            reached = item.record.seq
        wanted = [
            item.record
            for item in window
            if item.record.node not in nodes and (match is None or matches(match, item.record.tag))
        ]
        return Answer(wanted, tombstone, reached)

    def _gap(self, from_seq: int) -> tuple[Tombstone | None, int]:
        """What a cursor must be told first, and the seq it goes on from."""
        asked = from_seq + 1
        earliest = self.earliest_seq
        if from_seq > self.head_seq:
            return self._tombstone(1, self.head_seq, Reason.RECREATED), earliest
        if asked < self.evict_floor:
            reasons = {i.reason for i in self.items if i.fate is Fate.EVICTED and i.record.seq >= asked}
            reason = reasons.pop() if len(reasons) == 1 else Reason.MIXED
            assert reason is not None
            return self._tombstone(asked, earliest - 1, reason), earliest
        rest = self.items[from_seq:]
        if not rest or rest[0].fate is not Fate.SKIPPED:
            return None, asked
        reason = rest[0].reason
        assert reason is not None
        skipped = 0
        while skipped < len(rest) and rest[skipped].fate is Fate.SKIPPED and rest[skipped].reason is reason:
            skipped += 1
        return self._tombstone(asked, from_seq + skipped, reason), asked + skipped

    def _tombstone(self, gap_from: int, gap_to: int, reason: Reason) -> Tombstone:
        return Tombstone(gap_from, gap_to, reason, gap_to - gap_from + 1, self.earliest_seq, self.head_seq)

    # ---- what changes it

    def append(self, drafts: Sequence[Draft], now_ms: int, key: DedupeKey | None = None) -> Receipt:
        """Write a batch, or raise what the engine must raise and change nothing."""
        self.expire(now_ms)
        if key is not None and (first := self._seen_before(key, now_ms)) is not None:
            return Receipt(first.first_seq, first.last_seq, deduped=True)
        items = self._items(drafts, now_ms)
        self.check_room(len(items), sum(item.size for item in items))
        self.items += items
        receipt = Receipt(self.head_seq - len(items) + 1, self.head_seq)
        if key is not None:
            self._remember(key, receipt, items[0].record.ts)
        self._evict()
        self._note("append", tuple(drafts), now_ms, key)
        return receipt

    def delete(self, now_ms: int, before_seq: int | None = None, match: Predicate | None = None) -> int:
        """Delete what is there and named; how many records that were live."""
        self.expire(now_ms)
        named = [
            item
            for item in self.live
            if (before_seq is None or item.record.seq < before_seq)
            and (match is None or matches(match, item.record.tag))
        ]
        for item in named:
            item.fate = Fate.DELETED
        self._note("delete", now_ms, before_seq, match)
        return len(named)

    def configure(self, config: TopicConfig, now_ms: int) -> None:
        """Change the config: what is gone stays gone, and the new TTL and caps act at once."""
        self.expire(now_ms)
        self._note("configure", config, now_ms)
        self.config = config
        self.expire(now_ms)
        self._evict()

    def skip(self, head_seq: int, reason: Reason = Reason.RESTART) -> None:
        """The seqs up to `head_seq` may have been given out and are not there any more."""
        self._note("skip", head_seq, reason)
        for seq in range(self.head_seq + 1, head_seq + 1):
            self.items.append(Item(Record(seq, 0, None), 0, Fate.SKIPPED, reason))

    def expire(self, now_ms: int) -> None:
        """A record is expired when it is older than the TTL, strictly. This is no operation: time does it."""
        for item in self.live:
            if self.config.ttl_ms and now_ms - item.record.ts > self.config.ttl_ms:
                item.fate, item.reason = Fate.EVICTED, Reason.TTL

    def check_room(self, count: int, size: int) -> None:
        """Refuse what a topic that rejects when full has no room for."""
        caps = self.config
        if caps.discard is not Discard.REJECT:
            return
        if 0 < caps.cap_records < count or 0 < caps.cap_bytes < size:
            raise RecordTooLarge("the write is larger than all that the topic may hold")
        live = self.live
        count += len(live)
        size += sum(item.size for item in live)
        if 0 < caps.cap_records < count or 0 < caps.cap_bytes < size:
            raise TopicFull("the topic is full")

    def _evict(self) -> None:
        live = self.live
        size = sum(item.size for item in live)
        while 0 < self.config.cap_records < len(live) or 0 < self.config.cap_bytes < size:
            oldest = live.pop(0)
            size -= oldest.size
            oldest.fate, oldest.reason = Fate.EVICTED, Reason.CAP

    def _items(self, drafts: Sequence[Draft], now_ms: int) -> list[Item]:
        ts = max([now_ms, *(item.record.ts for item in self.items)])
        items = []
        for seq, draft in enumerate(drafts, self.head_seq + 1):
            data = msgspec.json.decode(msgspec.json.encode(draft["data"]))
            node, tag = draft.get("node") or None, draft.get("tag") or None
            items.append(Item(Record(seq, ts, data, node, tag, draft.get("meta")), payload_bytes(draft)))
        return items

    # ---- repeated writes

    def _seen_before(self, key: DedupeKey, now_ms: int) -> Receipt | None:
        if isinstance(key, IdempotencyKey):
            receipt, ts = self._keys.get(key.key, (None, 0))
            return receipt if now_ms - ts <= self.config.idempotency_window_ms else None
        epoch, sequences = self._producers.get(key.producer_id, (0, {}))
        newest_ts = max((ts for _, ts in sequences.values()), default=0)
        if now_ms - newest_ts > PRODUCER_WINDOW_MS or key.epoch > epoch:
            return None
        if key.epoch < epoch:
            raise ProducerFenced("the producer has written with a newer epoch")
        receipt, ts = sequences.get(key.sequence, (None, 0))
        return receipt if now_ms - ts <= PRODUCER_WINDOW_MS else None

    def _remember(self, key: DedupeKey, receipt: Receipt, ts: int) -> None:
        if isinstance(key, IdempotencyKey):
            self._keys[key.key] = receipt, ts
            return
        epoch, sequences = self._producers.get(key.producer_id, (0, {}))
        if key.epoch > epoch:
            sequences = {}
        self._producers[key.producer_id] = key.epoch, sequences | {key.sequence: (receipt, ts)}

    # ---- crashes

    def _note(self, verb: str, *arguments: Any) -> None:
        volatile = self.config.durability is Durability.EPHEMERAL
        self.operations.append(Operation(verb, arguments, volatile))

    def acked(self, operations: int) -> None:
        """The first so many operations have been answered. In the fsync class that is a promise."""
        self.acked_operations = max(self.acked_operations, operations)
        if self.config.durability is Durability.FSYNC:
            self.promised_operations = max(self.promised_operations, operations)

    def synced(self, operations: int) -> None:
        """The first so many operations are durable. In the classes that promise nothing this means nothing."""
        if self.config.durability in (Durability.DISK, Durability.FSYNC):
            self.promised_operations = max(self.promised_operations, operations)

    def survivor(self, operations: int) -> OracleLog:
        """What a restart makes of the first so many operations: ephemeral records leave their seqs behind."""
        log = OracleLog(self._first_config)
        for operation in self.operations[:operations]:
            receipt = getattr(log, operation.verb)(*operation.arguments)
            if operation.volatile and operation.verb == "append" and not receipt.deduped:
                log._lose(receipt)
        log.acked_operations = log.promised_operations = len(log.operations)
        return log

    def _lose(self, receipt: Receipt) -> None:
        for item in self.items[receipt.first_seq - 1 :]:
            item.fate, item.reason = Fate.SKIPPED, Reason.RESTART

    def explain(self, records: Sequence[Record], view: View, now_ms: int) -> OracleLog:
        """The log that a recovery has led to, given all records it reads (with tags) and its numbers.

        It is what a prefix of the operations makes, with everything promised in it; seqs may have been skipped behind
        it. Raises `AssertionError` when there is no such prefix: something acked is missing, something deleted or
        never written is there, a batch is torn, or a seq could be given out twice.
        """
        self._check_head(view.head_seq)
        closest = ""
        for operations in range(len(self.operations), self.promised_operations - 1, -1):
            log = self.survivor(operations)
            if view.head_seq > log.head_seq:
                log.skip(view.head_seq)
            expected = log.view(now_ms)
            found = [item.record for item in log.live]
            if expected == view and found == list(records):
                return log
            closest = closest or _difference(expected, view, found, records)
        raise AssertionError(
            f"what was recovered is not the outcome of any {self.promised_operations} to {len(self.operations)} "
            f"operations; all of them would differ by {closest}"
        )

    def _check_head(self, head_seq: int) -> None:
        """Seqs that were acked are never given out again, unless the class allows it."""
        if self.config.durability in (Durability.EPHEMERAL, Durability.MEMORY):
            return
        acked_seq = self.survivor(self.acked_operations).head_seq
        assert head_seq >= acked_seq, f"seq {acked_seq} was acked and could be given out again behind {head_seq}"


def _difference(expected: View, view: View, wanted: Sequence[Record], records: Sequence[Record]) -> str:
    if expected != view:
        return f"{view} instead of {expected}"
    missing = [record.seq for record in wanted if record not in records]
    foreign = [record.seq for record in records if record not in wanted]
    return f"the missing seqs {missing} and the unexpected {foreign}"
