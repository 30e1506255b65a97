"""`disheap.v1.Disheap`: the rpcs that existing clients know. Each checks the name, calls one verb, and answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from topics.core.commands import Configure, Drop
from topics.core.heapcommands import AckMessages, ExtendLeases, MakeHeap, MoveToDlq, NackMessages, PurgeHeap
from topics.core.names import check_topic
from topics.engine.host import Host
from topics.engine.ticket import Ticket
from topics.errors import ConfirmationNeeded, InvalidRequest
from topics.heapmodel import Enqueued, EnqueuedBatch, HeapInfo, HeapStats, LeaseRef, NewMessage, Purged
from topics.limits import HEAP_PEEK_MAX
from topics.proto import messages as proto
from topics.server.auth import check_config, check_name
from topics.server.context import Context
from topics.server.destruction import destroy
from topics.server.grpc import values
from topics.server.grpc.calls import Asker, Served
from topics.server.grpc.popstream import PopCall
from topics.server.grpc.stopping import Stopping
from topics.server.heaptotals import summed
from topics.server.principal import Scope
from topics.wire.cursor import decode_cursor, encode_cursor

PAGE_DEFAULT: Final = 100
PAGE_MAX: Final = 1000
PEEK_DEFAULT: Final = 10
OVER: Final = "grpc"


class Disheap:
    def __init__(self, context: Context, stopping: Stopping) -> None:
        self._context = context
        self._stopping = stopping

    def served(self) -> dict[str, Served]:
        return {
            "MakeHeap": Served(Scope.ADMIN, self.make_heap),
            "DeleteHeap": Served(Scope.DELETE, self.delete_heap),
            "UpdateHeapConfig": Served(Scope.ADMIN, self.update_heap_config),
            "ListHeaps": Served(Scope.READ, self.list_heaps),
            "Stats": Served(Scope.READ, self.stats),
            "Purge": Served(Scope.DELETE, self.purge),
            "MoveToDLQ": Served(Scope.WRITE, self.move_to_dlq),
            "Enqueue": Served(Scope.WRITE, self.enqueue),
            "EnqueueBatch": Served(Scope.WRITE, self.enqueue_batch),
            "PopStream": Served(Scope.READ | Scope.WRITE, self.pop_stream),
            "Ack": Served(Scope.WRITE, self.ack),
            "Nack": Served(Scope.WRITE, self.nack),
            "Extend": Served(Scope.WRITE, self.extend),
            "Peek": Served(Scope.READ, self.peek),
        }

    # ---- heaps

    async def make_heap(self, asker: Asker, request: Any) -> Any:
        topic = named(asker, request.topic)
        fields = values.config_fields(request)
        check_config(asker.principal, fields)
        info = await self._host.submit(MakeHeap(topic, fields))
        assert isinstance(info, HeapInfo)
        return proto.MakeHeapResp(topic=info.topic, heap_id=info.heap_id)

    async def delete_heap(self, asker: Asker, request: Any) -> Any:
        topic = named(asker, request.topic)
        host = self._host
        host.engine.heaps.info(topic)
        forced("DeleteHeap", topic, request.force)

        async def drop() -> None:
            await host.submit(Drop(topic))

        await destroy(
            self._context, "delete_heap", topic, asker.principal, drop, over=OVER, request_id=asker.request_id
        )
        return proto.Empty()

    async def update_heap_config(self, asker: Asker, request: Any) -> Any:
        topic = named(asker, request.topic)
        host = self._host
        fields = values.changed_fields(request, host.engine.heaps.info(topic).config.dlq_topic)
        check_config(asker.principal, fields)
        if fields:
            await host.submit(Configure(topic, fields, True))
        return proto.Empty()

    async def list_heaps(self, asker: Asker, request: Any) -> Any:
        """A page of them: as many as are asked for, of which a key sees those within its prefixes."""
        await self._host.freshened(*self._host.fed())
        size = min(request.page_size or PAGE_DEFAULT, PAGE_MAX)
        after = decode_cursor(request.page_token) if request.page_token else ""
        found = self._host.engine.heaps.list("", after, size)
        shown = [info for info in found if asker.principal.may_touch(info.topic)]
        token = encode_cursor(found[-1].topic) if len(found) == size else ""
        return proto.ListHeapsResp(heaps=map(values.heap_info, shown), next_page_token=token)

    async def stats(self, asker: Asker, request: Any) -> Any:
        heaps = self._host.engine.heaps
        partition = values.optional(request, "partition_id")
        if request.HasField("topic"):
            topic = named(asker, request.topic)
            await self._host.freshened(*self._host.with_letters(topic))
            stats = heaps.stats(topic, partition)
            told = values.heap_stats(stats)
            return proto.StatsResp(global_stats=told, topic_stats={topic: told})
        if partition is not None:
            raise InvalidRequest("partition_id takes a topic to be of", field="partition_id", expected="a topic")
        await self._host.freshened(*self._host.fed())
        return self._all_stats(asker)

    def _all_stats(self, asker: Asker) -> Any:
        heaps = self._host.engine.heaps
        answer = proto.StatsResp()
        found = []
        after = ""
        while page := heaps.list("", after, PAGE_MAX):
            after = page[-1].topic
            for info in page:
                if asker.principal.may_touch(info.topic):
                    found.append(info.stats or HeapStats())
                    answer.topic_stats[info.topic].CopyFrom(values.heap_stats(found[-1]))
        answer.global_stats.CopyFrom(values.heap_stats(summed(found)))
        return answer

    async def purge(self, asker: Asker, request: Any) -> Any:
        await purge(self._context, asker, request)
        return proto.Empty()

    # ---- messages

    async def enqueue(self, asker: Asker, request: Any) -> Any:
        topic = named(asker, request.topic)
        began_ns = self._context.heap_latency.begin(topic)
        done = await self._answer(self._host.engine.heaps.enqueue(topic, values.new_message(request)))
        assert isinstance(done, Enqueued)
        self._context.heap_latency.enqueued(topic, began_ns)
        return values.enqueued(done)

    async def enqueue_batch(self, asker: Asker, request: Any) -> Any:
        may = asker.principal
        messages = []
        for index, each in enumerate(request.requests):
            check_name(may, each.topic, f"requests[{index}].topic")
            messages.append((each.topic, values.new_message(each, f"requests[{index}].")))
        return values.enqueued_batch(await enqueue_batch(self._context, messages, request.transaction_id))

    async def pop_stream(self, asker: Asker, call: Any) -> None:
        await PopCall(self._context, self._stopping, asker, call).run()

    async def ack(self, asker: Asker, request: Any) -> Any:
        topic = named(asker, request.topic)
        await self._host.submit(AckMessages(topic, [lease_of(request)]))
        return proto.Empty()

    async def nack(self, asker: Asker, request: Any) -> Any:
        topic = named(asker, request.topic)
        backoff_ms = None
        if request.HasField("backoff_override"):
            backoff_ms = values.milliseconds("backoff_override", request.backoff_override)
        await self._host.submit(NackMessages(topic, [lease_of(request)], backoff_ms, request.reason))
        return proto.Empty()

    async def extend(self, asker: Asker, request: Any) -> Any:
        topic = named(asker, request.topic)
        extension_ms = values.milliseconds("extension", request.extension)
        await self._host.submit(ExtendLeases(topic, [LeaseRef(_token(request.lease_token))], extension_ms))
        return proto.Empty()

    async def peek(self, asker: Asker, request: Any) -> Any:
        topic = named(asker, request.topic)
        limit = min(request.limit or PEEK_DEFAULT, HEAP_PEEK_MAX)
        partition = values.optional(request, "partition_id")
        await self._host.freshened(*self._host.with_letters(topic))
        found = self._host.engine.heaps.peek(topic, partition, limit, request.include_dlq)
        return proto.PeekResp(items=map(values.peek_item, found.messages), has_more=found.has_more)

    async def move_to_dlq(self, asker: Asker, request: Any) -> Any:
        topic = named(asker, request.topic)
        await self._host.submit(MoveToDlq(topic, request.message_id, request.reason))
        return proto.Empty()

    # ---- the engine

    @property
    def _host(self) -> Host:
        return self._context.ready()

    async def _answer(self, ticket: Ticket) -> object:
        return ticket.result() if ticket.done else await self._host.answer(ticket)


async def enqueue_batch(
    context: Context, messages: Sequence[tuple[str, NewMessage]], transaction_id: str
) -> EnqueuedBatch:
    host, latency = context.ready(), context.heap_latency
    began_ns = latency.begin(messages[0][0]) if messages else 0
    ticket = host.engine.heaps.enqueue_batch(messages, transaction_id)
    done = ticket.result() if ticket.done else await host.answer(ticket)
    assert isinstance(done, EnqueuedBatch)
    if began_ns:
        latency.enqueued(messages[0][0], began_ns)
    return done


async def purge(context: Context, asker: Asker, request: Any) -> int:
    """Empty a heap, or one partition of it; how many messages went."""
    topic = named(asker, request.topic)
    partition = values.optional(request, "partition_id")
    host = context.ready()
    host.engine.heaps.info(topic)
    forced("Purge", topic, request.force)

    async def work() -> Purged:
        done = await host.submit(PurgeHeap(topic, partition))
        assert isinstance(done, Purged)
        return done

    done = await destroy(
        context,
        "purge_heap",
        topic,
        asker.principal,
        work,
        over=OVER,
        request_id=asker.request_id,
        partition=partition,
    )
    return done.purged


def named(asker: Asker, topic: str) -> str:
    """A topic within the key's prefixes."""
    check_name(asker.principal, check_topic(topic))
    return topic


def lease_of(request: Any) -> LeaseRef:
    return LeaseRef(_token(request.lease_token), request.message_id)


def _token(lease_token: str) -> str:
    if not lease_token:
        expected = "the token that came with the message"
        raise InvalidRequest("lease_token is missing", field="lease_token", expected=expected)
    return lease_token


def forced(what: str, topic: str, force: bool) -> None:
    if not force:
        raise ConfirmationNeeded(
            f'{what} of topic "{topic}" cannot be undone: set force to do it', action=what, name=topic
        )
