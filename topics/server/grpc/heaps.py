"""`topics.v1.Heaps`: what the contract of old clients lacks."""

from __future__ import annotations

from typing import Any

from topics.core.heapcommands import CancelMessage, DeleteDead, Popper, ReplayDead, Reprioritize
from topics.engine.deadsteps import dead_steps
from topics.engine.host import Host
from topics.heapmodel import DeadStep, Reprioritized
from topics.limits import HEAP_PEEK_MAX
from topics.proto import messages as proto
from topics.server.auth import check_name
from topics.server.context import Context
from topics.server.destruction import destroy
from topics.server.grpc import values
from topics.server.grpc.calls import Asker, Served
from topics.server.grpc.disheap import OVER, PAGE_DEFAULT, PAGE_MAX, PEEK_DEFAULT, enqueue_batch, forced, named, purge
from topics.server.grpc.settling import Settling
from topics.server.grpc.stopping import Stopping
from topics.server.grpc.workstream import WorkCall
from topics.server.principal import Scope
from topics.wire.cursor import decode_cursor, encode_cursor


class Heaps:
    def __init__(self, context: Context, stopping: Stopping) -> None:
        self._context = context
        self._stopping = stopping

    def served(self) -> dict[str, Served]:
        return {
            "Work": Served(Scope.READ | Scope.WRITE, self.work),
            "EnqueueMany": Served(Scope.WRITE, self.enqueue_many),
            "Pop": Served(Scope.READ | Scope.WRITE, self.pop),
            "SettleMany": Served(Scope.WRITE, self.settle_many),
            "Reprioritize": Served(Scope.WRITE, self.reprioritize),
            "Cancel": Served(Scope.WRITE, self.cancel),
            "GetHeap": Served(Scope.READ, self.get_heap),
            "ListHeaps": Served(Scope.READ, self.list_heaps),
            "PurgeHeap": Served(Scope.DELETE, self.purge_heap),
            "Peek": Served(Scope.READ, self.peek),
            "PeekDeadLetter": Served(Scope.READ, self.peek_dead_letter),
            "ListDeadLetters": Served(Scope.READ, self.list_dead_letters),
            "ReplayDeadLetters": Served(Scope.READ | Scope.WRITE, self.replay_dead_letters),
            "DeleteDeadLetters": Served(Scope.DELETE, self.delete_dead_letters),
            "Snapshot": Served(Scope.ADMIN, self.snapshot),
        }

    async def work(self, asker: Asker, call: Any) -> None:
        await WorkCall(self._context, self._stopping, asker, call).run()

    # ---- messages

    async def enqueue_many(self, asker: Asker, request: Any) -> Any:
        messages = []
        for index, each in enumerate(request.messages):
            field = f"messages[{index}]."
            check_name(asker.principal, each.topic, f"{field}topic")
            messages.append((each.topic, values.rich_message(each, field)))
        return values.enqueued_batch(await enqueue_batch(self._context, messages, request.transaction_id))

    async def settle_many(self, asker: Asker, request: Any) -> Any:
        topic = named(asker, request.topic)
        host = self._host
        settling = Settling(topic, request.settle, self._context.settings.max_claim)
        await settling.begin(host)
        return await settling.answered()

    async def reprioritize(self, asker: Asker, request: Any) -> Any:
        topic = named(asker, request.topic)
        done = await self._host.submit(Reprioritize(topic, request.message_id, request.priority))
        assert isinstance(done, Reprioritized)
        return proto.ReprioritizeResp(old_priority=done.previous_priority)

    async def cancel(self, asker: Asker, request: Any) -> Any:
        topic = named(asker, request.topic)
        await self._host.submit(CancelMessage(topic, request.message_id))
        return proto.CancelResp()

    async def pop(self, asker: Asker, request: Any) -> Any:
        topic = named(asker, request.topic)
        popper = Popper(asker.consumer, request.max or 1, values.visibility_ms(request))
        wait_ms = values.milliseconds("wait_time", request.wait_time)
        popped = await self._host.pop(topic, popper, wait_ms, tuple(request.partition_ids))
        return proto.WorkItems(items=map(values.message, popped.messages))

    async def get_heap(self, asker: Asker, request: Any) -> Any:
        return values.heap(self._host.engine.heaps.info(await self._read(asker, request)))

    async def list_heaps(self, asker: Asker, request: Any) -> Any:
        await self._host.freshened(*self._host.fed())
        size = min(request.page_size or PAGE_DEFAULT, PAGE_MAX)
        after = decode_cursor(request.page_token) if request.page_token else ""
        found = self._host.engine.heaps.list(request.prefix, after, size)
        shown = [values.heap(info) for info in found if asker.principal.may_touch(info.topic)]
        token = encode_cursor(found[-1].topic) if len(found) == size else ""
        return proto.FoundHeaps(heaps=shown, next_page_token=token)

    async def purge_heap(self, asker: Asker, request: Any) -> Any:
        return proto.CountResp(count=await purge(self._context, asker, request))

    async def peek(self, asker: Asker, request: Any) -> Any:
        topic = await self._read(asker, request)
        limit = min(request.limit or PEEK_DEFAULT, HEAP_PEEK_MAX)
        partition = values.optional(request, "partition_id")
        found = self._host.engine.heaps.peek(topic, partition, limit, request.include_dlq)
        items = map(values.peeked_message, found.messages)
        return proto.PeekedMessages(items=items, has_more=found.has_more)

    # ---- dead letters

    async def peek_dead_letter(self, asker: Asker, request: Any) -> Any:
        topic = await self._read(asker, request)
        return values.dead_letter(self._host.engine.heaps.dead_letter(topic, request.message_id))

    async def list_dead_letters(self, asker: Asker, request: Any) -> Any:
        topic = await self._read(asker, request)
        limit = min(request.limit or PAGE_DEFAULT, PAGE_MAX)
        page = self._host.engine.heaps.dead_letters(
            topic, values.dead_filter(request.filter), request.page_token, limit
        )
        return proto.ListDeadLettersResp(items=map(values.dead_letter, page.messages), next_page_token=page.next_cursor)

    async def replay_dead_letters(self, asker: Asker, request: Any) -> Any:
        topic = await self._read(asker, request)
        chosen = values.dead_filter(request.filter)
        done = await dead_steps(
            self._host, lambda cursor, limit: ReplayDead(topic, chosen, cursor, limit), request.limit
        )
        return _counted(done)

    async def delete_dead_letters(self, asker: Asker, request: Any) -> Any:
        topic = await self._read(asker, request)
        chosen = values.dead_filter(request.filter)
        host = self._host
        host.engine.heaps.info(topic)
        forced("DeleteDeadLetters", topic, request.force)

        async def delete() -> DeadStep:
            return await dead_steps(host, lambda cursor, limit: DeleteDead(topic, chosen, cursor, limit), request.limit)

        done = await destroy(
            self._context, "delete_dead_letters", topic, asker.principal, delete, over=OVER, request_id=asker.request_id
        )
        return _counted(done)

    async def _read(self, asker: Asker, request: Any) -> str:
        """The heap of a request that reads it and its dead letters, when both have what is on its way to them."""
        topic = named(asker, request.topic)
        await self._host.freshened(*self._host.with_letters(topic))
        return topic

    # ---- the whole of it

    async def snapshot(self, asker: Asker, request: Any) -> Any:
        host = self._host
        taken_ms = host.engine.now_ms()
        await host.checkpoint()
        return proto.SnapshotResp(taken_at=values.timestamp(taken_ms))

    @property
    def _host(self) -> Host:
        return self._context.ready()


def _counted(step: DeadStep) -> Any:
    return proto.CountResp(count=step.done_count, skipped=step.skipped_count)
