"""What one partition remembers of its writes, so that a repeated write is answered instead of appended.

One mechanism, two spellings. A write may carry an idempotency key, remembered for the topic's window, or a producer's
(id, epoch, sequence), remembered for 24 hours. Both map to where the first write went.

Idempotency keys stand in the order they came. A key is dead when it is older than the window the topic has *now*.
Dead keys are dropped from the front, a few with each lookup, so no write pays for many.

A producer numbers its writes, so they are kept as runs: writes with consecutive sequences, the same number of records
each, one behind the other in the log. A steady producer extends one run. All of a run expires together with its last
write, so a run is closed after `PRODUCER_RUN_SPAN_MS`: a producer's writes are remembered for 24 hours and at most that
much longer. The epoch fences: a newer one drops what older ones left, an older one is refused.

The newest epoch of a producer and its newest write are remembered until the producer is forgotten by command. After a
silent day only these are left, as a `Fence`. Producers with a one-off id (`core/fence.py`) leave nothing then.

All tables are bounded (`DEDUPE_KEYS_MAX`, `DEDUPE_RUNS_MAX`, `PRODUCERS_MAX`). The first two throttle when they are
full of live entries; the third refuses producers that are new.

`take_chunk` hands out what was added since it was last called, for the snapshot; `load_chunk` takes chunks back, oldest
first. Entries of a chunk replace the same entries of older ones, and replaying a write that a chunk holds already
changes nothing. Fences are stored one by one: `retire` makes them before chunks that are dead go, and `changed_fences`
names those to store or to remove. See docs/FORMAT.md for the bytes.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, islice

import msgspec

from topics.core.fence import Fence, is_one_off, no_room, state_of
from topics.core.names import shorten
from topics.core.producerruns import Producer, Run
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
    PRODUCERS_MAX,
    U64_MAX,
)
from topics.producermodel import ProducerState


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


class _Chunk(msgspec.Struct, array_like=True):
    keys: list[tuple[str, Hit]]
    producers: list[tuple[str, int, list[Run]]]


_LATEST = struct.Struct("<QQ")
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Chunk)


class Dedupe:
    __slots__ = (
        "_fences",
        "_forgotten",
        "_fresh_keys",
        "_fresh_producers",
        "_keeps_times",
        "_kept_count",
        "_keys",
        "_producers",
        "_run_count",
        "changed_fences",
    )

    def __init__(self, keeps_times: bool = False) -> None:
        """With `keeps_times`, the time of a hit is that of the write itself, also of one among several of a run."""
        self._keeps_times = keeps_times
        self.clear()

    def clear(self) -> None:
        # Plain dicts find their first entry slowly after many deletions at the front; ordered ones do not.
        self._keys: OrderedDict[str, Hit] = OrderedDict()
        self._producers: OrderedDict[str, Producer] = OrderedDict()
        """Those that wrote within a day, least recently active first."""
        self._kept_count = 0
        """How many of `_producers` become fences."""
        self._fences: dict[str, Fence] = {}
        self.changed_fences: set[str] = set()
        """Producers whose fence came or went since the owner of the snapshot last cleared this."""
        self._forgotten: dict[str, int] = {}
        """Producers that were forgotten since the last chunk, and when: older chunks may hold them."""
        self._run_count = 0
        self._fresh_keys = 0
        """How many of the last entries of `_keys` are in no chunk yet."""
        self._fresh_producers: set[str] = set()

    def __len__(self) -> int:
        return len(self._keys) + len(self._producers) + self._run_count + len(self._fences)

    def lookup(self, key: DedupeKey, now_ms: int, window_ms: int) -> Hit | None:
        """Where a write with this key went before, if that is remembered. An older epoch is `ProducerFenced`."""
        if isinstance(key, IdempotencyKey):
            hit = self._keys.get(key.key)
            return hit if hit is not None and now_ms - hit.ts <= window_ms else None
        producer = self._producers.get(key.producer_id)
        if producer is not None and not producer.keeps_newest and now_ms - producer.last_ts > PRODUCER_WINDOW_MS:
            return None
        known = producer or self._fences.get(key.producer_id)
        if known is None or key.epoch > known.epoch:
            return None
        if key.epoch < known.epoch:
            raise ProducerFenced(
                f'producer "{key.producer_id}" has written with epoch {known.epoch}: epoch {key.epoch} is over',
                producer_id=key.producer_id,
                epoch=key.epoch,
                current_epoch=known.epoch,
            )
        write = known.write(key.sequence, now_ms)
        return Hit(write.first_seq, write.count, write.ts) if write is not None else None

    def admit(self, key: DedupeKey, now_ms: int, window_ms: int) -> None:
        """Make room to `record` a key that `lookup` did not find, or raise why there is none."""
        self._expire(now_ms, window_ms)
        if isinstance(key, ProducerKey):
            self._admit_producer(key.producer_id, now_ms)
        if len(self._keys) + len(self._producers) >= DEDUPE_KEYS_MAX:
            raise _full("dedupe_keys", DEDUPE_KEYS_MAX)
        if isinstance(key, ProducerKey) and self._run_count >= DEDUPE_RUNS_MAX:
            raise _full("dedupe_runs", DEDUPE_RUNS_MAX)

    def _admit_producer(self, producer_id: str, now_ms: int) -> None:
        producer = self._producers.get(producer_id)
        if producer is not None:
            self._run_count -= producer.expire(now_ms)
        elif (
            producer_id not in self._fences
            and not is_one_off(producer_id)
            and self._kept_count + len(self._fences) >= PRODUCERS_MAX
        ):
            raise no_room(producer_id, "this partition", PRODUCERS_MAX, "topics producer forget ID --topic TOPIC")

    def record(self, key: DedupeKey, ts: int, first_seq: int, count: int) -> None:
        """Remember where a write went. Recording the same write again changes nothing."""
        if isinstance(key, IdempotencyKey):
            self._put_key(key.key, Hit(first_seq, count, ts))
        else:
            self._put_run(key.producer_id, key.epoch, Run(key.sequence, first_seq, 1, count, ts))

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
        # An entry without runs voids those of older chunks, so its chunk has to live for as long as they do.
        forgotten = sorted(self._forgotten.items())
        gone: list[tuple[str, int, list[Run]]] = [(producer_id, 0, []) for producer_id, _ in forgotten]
        self._fresh_keys = 0
        self._fresh_producers.clear()
        self._forgotten.clear()
        if not keys and not producers and not gone:
            return None
        latest_key = max((hit.ts for _, hit in keys), default=0)
        run_times = [run.last_ts for _, _, runs in producers for run in runs]
        latest_run = max([*run_times, *(at_ms for _, at_ms in forgotten)], default=0)
        return _LATEST.pack(latest_key, latest_run) + _encoder.encode(_Chunk(keys, gone + producers))

    def load_chunk(self, chunk: bytes, now_ms: int, window_ms: int) -> None:
        """Take a chunk back, leaving out what is dead. What it brings counts as taken already."""
        stored = _decoder.decode(memoryview(chunk)[_LATEST.size :])
        for key, hit in stored.keys:
            if now_ms - hit.ts <= window_ms:
                self._put_key(key, hit)
        for producer_id, epoch, runs in stored.producers:
            if not runs:
                self._drop(producer_id)
            kept = not is_one_off(producer_id)
            for run in runs:
                if kept or now_ms - run.last_ts <= PRODUCER_WINDOW_MS:
                    self._put_run(producer_id, epoch, run)
            if (producer := self._producers.get(producer_id)) is not None:
                producer.fresh_from = None
        self._fresh_keys = 0
        self._fresh_producers.clear()

    # ---- fences

    def retire(self, now_ms: int) -> None:
        """Leave fences of all producers that were silent for a day, before the chunks that hold them go."""
        while self._retire_idlest(now_ms):
            pass

    def fence(self, producer_id: str) -> Fence | None:
        """What is to be stored of a producer apart from chunks; None when that is nothing."""
        return self._fences.get(producer_id)

    def fenced(self) -> set[str]:
        """All producers whose fence may be stored."""
        return self.changed_fences | self._fences.keys()

    def load_fence(self, producer_id: str, fence: Fence) -> None:
        """Take a fence back, before all chunks."""
        self._fences[producer_id] = fence

    def knows(self, producer_id: str) -> bool:
        return producer_id in self._producers or producer_id in self._fences

    def forget(self, producer_id: str, at_ms: int) -> None:
        """Drop a producer with its fence, as if it had never written."""
        self._drop(producer_id)
        self._forgotten[producer_id] = at_ms

    def producers(self) -> Iterable[str]:
        """All that are remembered, in no order."""
        return chain(self._producers, self._fences)

    def producer(self, producer_id: str) -> ProducerState | None:
        live = self._producers.get(producer_id)
        fence = live.fence() if live is not None else self._fences.get(producer_id)
        if fence is None:
            return None
        return state_of(producer_id, fence.epoch, fence.sequence, live.last_ts if live is not None else fence.ts)

    def _drop(self, producer_id: str) -> None:
        producer = self._producers.pop(producer_id, None)
        if producer is not None:
            self._run_count -= len(producer)
            self._kept_count -= producer.keeps_newest
        if self._fences.pop(producer_id, None) is not None:
            self.changed_fences.add(producer_id)

    def _retire_idlest(self, now_ms: int) -> bool:
        """Take the producer that was silent longest out of the live ones, if that is a day; whether it was."""
        producer_id = next(iter(self._producers), None)
        if producer_id is None or now_ms - self._producers[producer_id].last_ts <= PRODUCER_WINDOW_MS:
            return False
        producer = self._producers.pop(producer_id)
        self._run_count -= len(producer)
        if producer.keeps_newest:
            self._kept_count -= 1
            self._fences[producer_id] = producer.fence()
            self.changed_fences.add(producer_id)
        return True

    def _put_key(self, key: str, hit: Hit) -> None:
        before = self._keys.get(key)
        if before is not None:
            if before.ts >= hit.ts:
                return
            self._keys.move_to_end(key)
        self._keys[key] = hit
        self._fresh_keys += 1

    def _put_run(self, producer_id: str, epoch: int, run: Run) -> None:
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._wake(producer_id)
        if producer is not None and producer.epoch > epoch:
            return
        if producer is None or producer.epoch < epoch:
            self._run_count -= len(producer) if producer is not None else 0
            producer = self._add_producer(producer_id, epoch)
        elif run.length == 1 and (index := producer.find(run.sequence)) is not None:
            if producer.last_tss[index] >= run.last_ts:
                return
        self._run_count += producer.put(run)
        self._producers.move_to_end(producer_id)
        fresh_from = producer.fresh_from
        producer.fresh_from = run.sequence if fresh_from is None else min(fresh_from, run.sequence)
        self._fresh_producers.add(producer_id)

    def _wake(self, producer_id: str) -> Producer | None:
        """A producer that left a fence is live again, with what the fence remembers."""
        fence = self._fences.pop(producer_id, None)
        if fence is None:
            return None
        self.changed_fences.add(producer_id)
        producer = self._add_producer(producer_id, fence.epoch)
        self._run_count += producer.put(Run(fence.sequence, fence.first_seq, 1, fence.count, fence.ts))
        producer.fresh_from = fence.sequence
        return producer

    def _add_producer(self, producer_id: str, epoch: int) -> Producer:
        """A producer at the beginning of an epoch, in the place of the same one in an older epoch."""
        kept = not is_one_off(producer_id)
        self._kept_count += kept and producer_id not in self._producers
        span_ms = 1 if self._keeps_times else PRODUCER_RUN_SPAN_MS
        producer = self._producers[producer_id] = Producer(epoch, span_ms, kept)
        return producer

    def _expire(self, now_ms: int, window_ms: int) -> None:
        for _ in range(DEDUPE_EXPIRED_PER_WRITE_MAX):
            front = next(iter(self._keys.values()), None)
            if front is None or now_ms - front.ts <= window_ms:
                break
            self._keys.popitem(last=False)
        for _ in range(DEDUPE_EXPIRED_PER_WRITE_MAX):
            if not self._retire_idlest(now_ms):
                break


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
