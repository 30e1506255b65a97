"""A lane of a producer: the records for one partition, gathered into batches that leave one after the other.

A batch leaves when it has enough records, enough bytes, when its first record has waited for `linger_ms`, or when
somebody flushes. The next one leaves when the one before is answered: so order is kept, whatever has to be repeated,
and while an answer is awaited the next batch fills.

Each batch is a write with the producer's id, an epoch and a sequence, which the server remembers: a repeated one is
answered and not appended. With a new epoch it forgets what it knew of the old one, and refuses what still comes of it.
So the lane begins one now and then, to be forgotten in time, and when it gives a batch up, so that this batch does not
appear behind later ones after all.

A record that the server refuses must not take others with it: its batch is cut in halves until it stands alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from topics.client.backoff import Backoff
from topics.client.delivery import Delivered, Delivery
from topics.client.produceroptions import ProducerOptions
from topics.client.transport import Transport, WriteRequest
from topics.errors import Internal, InvalidRequest, PayloadTooLarge, ShuttingDown, TopicsError
from topics.limits import SECOND_MS
from topics.model import Written

EPOCH_WRITES_MAX: Final = 1024
"""Writes after which a lane begins a new epoch; as many are remembered of it at most."""


class Entry(NamedTuple):
    record: Mapping[str, Any]
    size_bytes: int
    arrived_s: float
    delivery: Delivery


class Lane:
    def __init__(
        self,
        transport: Transport,
        topic: str,
        partition: int,
        options: ProducerOptions,
        on_settled: Callable[[Entry], None],
    ) -> None:
        self._transport = transport
        self._topic = topic
        self._partition = partition
        self._options = options
        self._on_settled = on_settled
        self._epoch = options.epoch
        self._sequence = 0
        self._waiting: deque[Entry] = deque()
        self._waiting_bytes = 0
        self._under_way: list[Entry] = []
        self._hurries = False
        self._enough = asyncio.Event()
        self._work: asyncio.Task[None] | None = None

    def put(self, entry: Entry) -> None:
        self._waiting.append(entry)
        self._waiting_bytes += entry.size_bytes
        options = self._options
        if len(self._waiting) >= options.batch_records_max or self._waiting_bytes >= options.batch_bytes_max:
            self._enough.set()
        if self._work is None:
            self._work = asyncio.create_task(self._run())

    async def flush(self) -> None:
        """Returns when all that was put in before is settled, one way or the other."""
        last = self._waiting[-1] if self._waiting else self._under_way[-1] if self._under_way else None
        if last is None:
            return
        self._hurries = True
        self._enough.set()
        await last.delivery._settled()

    async def stop(self) -> None:
        """Give up what is not settled."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.gather(self._work, return_exceptions=True)
        self._give_up(ShuttingDown("the producer was closed before the record was delivered"))

    async def _run(self) -> None:
        try:
            while self._waiting:
                await self._linger()
                self._under_way = self._cut()
                await self._deliver(self._under_way)
                self._under_way = []
        except Exception as error:
            self._give_up(error)
        finally:
            self._hurries = False
            self._work = None

    async def _linger(self) -> None:
        """Wait until the batch is large enough, or its first record has waited long enough."""
        leaves_s = self._waiting[0].arrived_s + self._options.linger_ms / SECOND_MS
        if self._hurries or self._enough.is_set() or leaves_s <= asyncio.get_running_loop().time():
            return
        try:
            async with asyncio.timeout_at(leaves_s):
                await self._enough.wait()
        except TimeoutError:
            return

    def _cut(self) -> list[Entry]:
        batch: list[Entry] = []
        size_bytes = 0
        options = self._options
        while self._waiting and len(batch) < options.batch_records_max:
            if batch and size_bytes + self._waiting[0].size_bytes > options.batch_bytes_max:
                break
            entry = self._waiting.popleft()
            batch.append(entry)
            size_bytes += entry.size_bytes
        self._waiting_bytes -= size_bytes
        if len(self._waiting) < options.batch_records_max and self._waiting_bytes < options.batch_bytes_max:
            self._enough.clear()
        return batch

    async def _deliver(self, batch: list[Entry]) -> None:
        try:
            written = await self._write(batch)
            if len(written.seqs) != len(batch):
                raise Internal(f"the server says that it wrote {len(written.seqs)} records of {len(batch)}")
        except TopicsError as error:
            if len(batch) > 1 and isinstance(error, InvalidRequest | PayloadTooLarge):
                middle = len(batch) // 2
                await self._deliver(batch[:middle])
                await self._deliver(batch[middle:])
                return
            if self._transport.may_pass(error):
                self._begin_epoch()
            self._settle_badly(batch, error)
            return
        for entry, seq in zip(batch, written.seqs, strict=True):
            entry.delivery._succeed(Delivered(topic=self._topic, partition=written.partition, seq=seq))
            self._on_settled(entry)

    async def _write(self, batch: list[Entry]) -> Written:
        options = self._options
        request = WriteRequest(
            records=[entry.record for entry in batch],
            node=options.node,
            partition=self._partition,
            producer=(options.id, self._epoch, self._sequence),
            create=options.create,
            config=options.config,
        )
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + options.delivery_timeout_ms / SECOND_MS
        backoff = Backoff()
        while True:
            try:
                written = await self._transport.write(self._topic, request)
            except TopicsError as error:
                pause_s = backoff.next_s(_retry_after_ms(error))
                if not self._transport.may_pass(error) or loop.time() + pause_s >= deadline_s:
                    raise
                await asyncio.sleep(pause_s)
            else:
                self._sequence += 1
                if self._sequence == EPOCH_WRITES_MAX:
                    self._begin_epoch()
                return written

    def _begin_epoch(self) -> None:
        self._epoch += 1
        self._sequence = 0

    def _give_up(self, error: Exception) -> None:
        left = [*self._under_way, *self._waiting]
        self._under_way = []
        self._waiting.clear()
        self._waiting_bytes = 0
        self._settle_badly(left, error)

    def _settle_badly(self, entries: list[Entry], error: Exception) -> None:
        for entry in entries:
            if not entry.delivery.done():
                entry.delivery._fail(error)
                self._on_settled(entry)


def _retry_after_ms(error: TopicsError) -> int:
    said = error.detail.get("retry_after_ms", 0)
    return said if isinstance(said, int) else 0
