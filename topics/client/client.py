"""A client: the topics of one engine, wherever that runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from types import TracebackType
from typing import Self

from topics.client.fields import RecordFields, check_records
from topics.client.topic import Topic
from topics.client.transport import StageRequest, Transport
from topics.model import Aborted, Published, StageState, TopicState

TOPICS_PAGE = 100
"""Topics asked for at once while listing them."""


class Client:
    """All topics of one engine. Use it in `async with`, which opens and closes it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def __aenter__(self) -> Self:
        await self._transport.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Finish what was begun, store everything, let go of the engine. Leaving `async with` does it."""
        await self._transport.close()

    def topic(self, name: str) -> Topic:
        """The topic of this name, whether it exists already or not."""
        return Topic(self._transport, name)

    async def topics(self, prefix: str = "") -> AsyncIterator[TopicState]:
        """The topics whose names begin with `prefix`, in order of their names: the state of each one's partition 0."""
        after = ""
        while True:
            found = await self._transport.topics(prefix=prefix, after=after, limit=TOPICS_PAGE)
            for state in found:
                yield state
            if len(found) < TOPICS_PAGE:
                return
            after = found[-1].topic

    # ---- atomic batches

    async def stage(
        self,
        stage: str,
        topic: str,
        records: Iterable[RecordFields],
        *,
        node: str | None = None,
        partition: int | None = None,
        key: str | None = None,
    ) -> StageState:
        """Put records aside for a topic under an id of your choice: durable, invisible, and gone unless published.

        A stage may be added to until it is published. Each stage is for one partition of one topic.
        """
        request = StageRequest(
            stage=stage, topic=topic, records=check_records(records), node=node, partition=partition, key=key
        )
        return await self._transport.stage(request)

    async def publish(self, stages: Sequence[str], *, producer: tuple[str, int]) -> Published:
        """Make the records of several stages visible in one commit, in this order: all of them, or none.

        `producer` is an id and an epoch that counts up. Publishing again with the same two gives the first answer.
        """
        return await self._transport.publish(stages, producer=producer)

    async def abort(self, stages: Sequence[str]) -> Aborted:
        """Throw stages away; the answer names those that were there."""
        return await self._transport.abort(stages)
