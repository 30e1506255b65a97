"""What one partition remembers of its writes, so that a repeated write is answered instead of appended.

One mechanism, two spellings. A write may carry an idempotency key, remembered for the topic's window, or a producer's
(id, epoch, sequence), remembered for 24 hours. Both map to where the first write went.

Idempotency keys stand in the order they came. A key is dead when it is older than the window the topic has *now*.
Dead keys are dropped from the front, a few with each lookup, so no write pays for many.

A producer numbers its writes, so they are kept as runs: writes with consecutive sequences, the same number of records
each, one behind the other in the log. A steady producer extends one run. All of a run expires together with its last
write, so a run is closed after `PRODUCER_RUN_SPAN_MS`: a producer's writes are remembered for 24 hours and at most that
much longer. The epoch fences: a newer one drops what older ones left, an older one is refused.

Both tables are bounded (`DEDUPE_KEYS_MAX`, `DEDUPE_RUNS_MAX`); full of live entries they throttle and do not forget.

`take_chunk` hands out what was added since it was last called, for the snapshot; `load_chunk` takes chunks back, oldest
first. Entries of a chunk replace the same entries of older ones, and replaying a write that a chunk holds already
changes nothing. See docs/FORMAT.md for a chunk's bytes.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import msgspec

from topics.core.names import shorten
from topics.core.volatile import Volatile
from topics.errors import InvalidRequest, ProducerFenced, Throttled
from topics.limits import (
    DEDUPE_EXPIRED_PER_WRITE_MAX,
    DEDUPE_KEYS_MAX,
    DEDUPE_RUNS_MAX,
    IDEMPOTENCY_KEY_CHARS_MAX,
    PRODUCER_ID_BYTES_MAX,
    PRODUCER_RUN_SPAN_MS,
    PRODUCER_WINDOW_MS,
    U32_MAX,
    U64_MAX,
)


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    key: str


@dataclass(frozen=True, slots=True)
class ProducerKey:
    producer_id: str
    epoch: int
    sequence: int


DedupeKey = IdempotencyKey | ProducerKey


class Hit(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Where the first write with a key went. Of a producer, `ts` is that of the last write of the same run."""

    first_seq: int
    count: int
    ts: int


def check_idempotency_key(key: object) -> IdempotencyKey:
    """A key a client sent, checked."""
    if not isinstance(key, str) or not 1 <= len(key) <= IDEMPOTENCY_KEY_CHARS_MAX:
        raise _refuse("idempotency_key", key, f"a string of 1 to {IDEMPOTENCY_KEY_CHARS_MAX} characters")
    return IdempotencyKey(key)


def check_producer_key(producer_id: object, epoch: object, sequence: object) -> ProducerKey:
    """A producer's position a client sent, checked."""
    if not isinstance(producer_id, str) or not 1 <= len(producer_id.encode()) <= PRODUCER_ID_BYTES_MAX:
        raise _refuse("producer_id", producer_id, f"a string of 1 to {PRODUCER_ID_BYTES_MAX} bytes")
    return ProducerKey(producer_id, _check_u64("epoch", epoch), _check_u64("sequence", sequence))


class _Run(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Writes with consecutive sequences, `count` records each; in `_Producer` these are columns."""

    sequence: int
    first_seq: int
    length: int
    count: int
    last_ts: int

    def stored_parts(self, volatile: Volatile) -> Iterator[_Run]:
        """The writes whose records are not in memory only: a write is so whole, or not at all."""
        last_seq = self.first_seq + self.length * self.count - 1
        for first, last in volatile.stored_parts(self.first_seq, last_seq):
            before = (first - self.first_seq) // self.count
            length = (last - first + 1) // self.count
            yield _Run(self.sequence + before, first, length, self.count, self.last_ts)


class _Producer:
    """One producer in its newest epoch: runs as columns, ascending by sequence. Where a run begins never changes."""

    __slots__ = (
        "counts",
        "dead",
        "epoch",
        "first_seqs",
        "fresh_from",
        "last_ts",
        "last_tss",
        "lengths",
        "sequences",
        "span_ms",
    )

    def __init__(self, epoch: int, span_ms: int) -> None:
        self.epoch = epoch
        self.span_ms = span_ms
        """A run covers at most this long."""
        self.last_ts = 0
        self.fresh_from: int | None = None
        """The lowest sequence recorded since the last chunk."""
        self.dead = 0
        """How many of the first runs are known to be dead. They are dropped when they are half of all."""
        self.sequences = array("Q")
        self.first_seqs = array("Q")
        self.lengths = array("I")
        self.counts = array("I")
        self.last_tss = array("Q")

    def __len__(self) -> int:
        return len(self.sequences)

    def run(self, index: int) -> _Run:
        return _Run(
            self.sequences[index],
            self.first_seqs[index],
            self.lengths[index],
            self.counts[index],
            self.last_tss[index],
        )

    def find(self, sequence: int) -> int | None:
        """The index of the run that holds `sequence`."""
        index = bisect_right(self.sequences, sequence) - 1
        if index < 0 or sequence - self.sequences[index] >= self.lengths[index]:
            return None
        return index

    def extends(self, index: int, run: _Run) -> bool:
        """Whether a single write carries on where run `index` ends."""
        length, count = self.lengths[index], self.counts[index]
        return (
            run.sequence == self.sequences[index] + length
            and length < U32_MAX
            and run.count == count
            and run.first_seq == self.first_seqs[index] + length * count
            and run.last_ts // self.span_ms == self.last_tss[index] // self.span_ms
        )

    def put(self, run: _Run) -> int:
        """Add a run, or put it in the place of the one with the same first sequence; how many runs were added."""
        self.last_ts = max(self.last_ts, run.last_ts)
        index = bisect_right(self.sequences, run.sequence) - 1
        if index >= 0 and run.length == 1 and self.extends(index, run):
            self.lengths[index] += 1
            self.last_tss[index] = run.last_ts
            return 0
        added = index < 0 or self.sequences[index] != run.sequence
        if added:
            index += 1
        self.dead = min(self.dead, index)
        for column, value in zip(self._columns(), msgspec.structs.astuple(run), strict=True):
            column[index : index + (not added)] = array(column.typecode, (value,))
        return int(added)

    def expire(self, now_ms: int) -> int:
        """Find a few more dead runs at the front; how many were dropped."""
        for _ in range(DEDUPE_EXPIRED_PER_WRITE_MAX):
            if self.dead == len(self) or now_ms - self.last_tss[self.dead] <= PRODUCER_WINDOW_MS:
                break
            self.dead += 1
        dropped = self.dead
        if 2 * dropped < len(self):
            return 0
        for column in self._columns():
            del column[:dropped]
        self.dead = 0
        return dropped

    def _columns(self) -> tuple[array[int], ...]:
        return self.sequences, self.first_seqs, self.lengths, self.counts, self.last_tss


class _Chunk(msgspec.Struct, array_like=True):
    keys: list[tuple[str, Hit]]
    producers: list[tuple[str, int, list[_Run]]]


_LATEST = struct.Struct("<QQ")
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Chunk)


class Dedupe:
    __slots__ = ("_fresh_keys", "_fresh_producers", "_keeps_times", "_keys", "_producers", "_run_count")

    def __init__(self, keeps_times: bool = False) -> None:
        """With `keeps_times`, the time of a hit is that of the write itself, also of one among several of a run."""
        self._keeps_times = keeps_times
        self.clear()

    def clear(self) -> None:
        # Plain dicts find their first entry slowly after many deletions at the front; ordered ones do not.
        self._keys: OrderedDict[str, Hit] = OrderedDict()
        self._producers: OrderedDict[str, _Producer] = OrderedDict()
        """Least recently active first."""
        self._run_count = 0
        self._fresh_keys = 0
        """How many of the last entries of `_keys` are in no chunk yet."""
        self._fresh_producers: set[str] = set()

    def __len__(self) -> int:
        return len(self._keys) + len(self._producers) + self._run_count

    def lookup(self, key: DedupeKey, now_ms: int, window_ms: int) -> Hit | None:
        """Where a write with this key went before, if that is remembered. An older epoch is `ProducerFenced`."""
        if isinstance(key, IdempotencyKey):
            hit = self._keys.get(key.key)
            return hit if hit is not None and now_ms - hit.ts <= window_ms else None
        producer = self._producers.get(key.producer_id)
        if producer is None or now_ms - producer.last_ts > PRODUCER_WINDOW_MS or key.epoch > producer.epoch:
            return None
        if key.epoch < producer.epoch:
            raise ProducerFenced(
                f'producer "{key.producer_id}" has written with epoch {producer.epoch}: epoch {key.epoch} is over',
                producer_id=key.producer_id,
                epoch=key.epoch,
                current_epoch=producer.epoch,
            )
        index = producer.find(key.sequence)
        if index is None or now_ms - producer.last_tss[index] > PRODUCER_WINDOW_MS:
            return None
        run = producer.run(index)
        return Hit(run.first_seq + (key.sequence - run.sequence) * run.count, run.count, run.last_ts)

    def admit(self, key: DedupeKey, now_ms: int, window_ms: int) -> None:
        """Make room to `record` a key that `lookup` did not find; `Throttled` when all that is held is alive."""
        self._expire(now_ms, window_ms)
        if isinstance(key, ProducerKey) and (producer := self._producers.get(key.producer_id)) is not None:
            self._run_count -= producer.expire(now_ms)
        if len(self._keys) + len(self._producers) >= DEDUPE_KEYS_MAX:
            raise _full("dedupe_keys", DEDUPE_KEYS_MAX)
        if isinstance(key, ProducerKey) and self._run_count >= DEDUPE_RUNS_MAX:
            raise _full("dedupe_runs", DEDUPE_RUNS_MAX)

    def record(self, key: DedupeKey, ts: int, first_seq: int, count: int) -> None:
        """Remember where a write went. Recording the same write again changes nothing."""
        if isinstance(key, IdempotencyKey):
            self._put_key(key.key, Hit(first_seq, count, ts))
        else:
            self._put_run(key.producer_id, key.epoch, _Run(key.sequence, first_seq, 1, count, ts))

    def take_chunk(self, volatile: Volatile | None = None) -> bytes | None:
        """What was recorded since the last call, None when nothing was; not of writes that are in memory only."""
        keys = list(islice(reversed(self._keys.items()), min(self._fresh_keys, len(self._keys))))[::-1]
        if volatile is not None:
            keys = [(key, hit) for key, hit in keys if hit.first_seq not in volatile]
        producers = []
        for producer_id in sorted(self._fresh_producers):
            producer = self._producers.get(producer_id)
            if producer is not None and producer.fresh_from is not None:
                first = max(0, bisect_right(producer.sequences, producer.fresh_from) - 1)
                runs = [producer.run(index) for index in range(first, len(producer))]
                if volatile is not None:
                    runs = [part for run in runs for part in run.stored_parts(volatile)]
                if runs:
                    producers.append((producer_id, producer.epoch, runs))
                producer.fresh_from = None
        self._fresh_keys = 0
        self._fresh_producers.clear()
        if not keys and not producers:
            return None
        latest_key = max((hit.ts for _, hit in keys), default=0)
        latest_run = max((run.last_ts for _, _, runs in producers for run in runs), default=0)
        return _LATEST.pack(latest_key, latest_run) + _encoder.encode(_Chunk(keys, producers))

    def load_chunk(self, chunk: bytes, now_ms: int, window_ms: int) -> None:
        """Take a chunk back, leaving out what is dead. What it brings counts as taken already."""
        if chunk_is_dead(chunk, now_ms, window_ms):
            return
        stored = _decoder.decode(memoryview(chunk)[_LATEST.size :])
        for key, hit in stored.keys:
            if now_ms - hit.ts <= window_ms:
                self._put_key(key, hit)
        for producer_id, epoch, runs in stored.producers:
            for run in runs:
                if now_ms - run.last_ts <= PRODUCER_WINDOW_MS:
                    self._put_run(producer_id, epoch, run)
            if (producer := self._producers.get(producer_id)) is not None:
                producer.fresh_from = None
        self._fresh_keys = 0
        self._fresh_producers.clear()

    def _put_key(self, key: str, hit: Hit) -> None:
        before = self._keys.get(key)
        if before is not None:
            if before.ts >= hit.ts:
                return
            self._keys.move_to_end(key)
        self._keys[key] = hit
        self._fresh_keys += 1

    def _put_run(self, producer_id: str, epoch: int, run: _Run) -> None:
        producer = self._producers.get(producer_id)
        if producer is not None and producer.epoch > epoch:
            return
        if producer is None or producer.epoch < epoch:
            self._run_count -= len(producer) if producer is not None else 0
            producer = self._producers[producer_id] = _Producer(epoch, 1 if self._keeps_times else PRODUCER_RUN_SPAN_MS)
        elif run.length == 1 and (index := producer.find(run.sequence)) is not None:
            if producer.last_tss[index] >= run.last_ts:
                return
        self._run_count += producer.put(run)
        self._producers.move_to_end(producer_id)
        fresh_from = producer.fresh_from
        producer.fresh_from = run.sequence if fresh_from is None else min(fresh_from, run.sequence)
        self._fresh_producers.add(producer_id)

    def _expire(self, now_ms: int, window_ms: int) -> None:
        for _ in range(DEDUPE_EXPIRED_PER_WRITE_MAX):
            front = next(iter(self._keys.values()), None)
            if front is None or now_ms - front.ts <= window_ms:
                break
            self._keys.popitem(last=False)
        for _ in range(DEDUPE_EXPIRED_PER_WRITE_MAX):
            idle = next(iter(self._producers.values()), None)
            if idle is None:
                break
            if now_ms - idle.last_ts <= PRODUCER_WINDOW_MS:
                break
            self._producers.popitem(last=False)
            self._run_count -= len(idle)


def chunk_is_dead(chunk: bytes, now_ms: int, window_ms: int) -> bool:
    """Whether nothing in a chunk can match any more, so that it need not be kept."""
    latest_key, latest_run = _LATEST.unpack_from(chunk)
    return bool(now_ms - latest_key > window_ms and now_ms - latest_run > PRODUCER_WINDOW_MS)


def _full(limit: str, most: int) -> Throttled:
    return Throttled(
        f"{limit}: {most} remembered writes are all still in their window; write fewer, larger batches or shorten"
        " idempotency_window_ms",
        limit=limit,
        max=most,
    )


def _check_u64(field: str, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= U64_MAX:
        raise _refuse(field, value, "an integer from 0 to 2^64-1")
    return value


def _refuse(field: str, value: object, expected: str) -> InvalidRequest:
    shown = shorten(value)
    return InvalidRequest(f"{field} must be {expected}, not {shown}", field=field, value=shown, expected=expected)
