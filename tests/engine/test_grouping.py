"""Who gets which records of a group, and when, on an engine driven by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.engine.rig import Rig, records
from tests.engine.test_host import opened, run
from topics.core.commands import Append, Configure, Drop
from topics.core.groupcommands import AckGroup, Consume, DropGroup, NackGroup, PauseGroup, ResetGroup
from topics.core.records import Records
from topics.engine import grouping
from topics.engine.groupline import Stream
from topics.engine.ticket import Ticket
from topics.errors import GroupNotFound, InvalidRequest, LogStopped, ShuttingDown, Throttled, TopicNotFound, TopicsError
from topics.groupmodel import EARLIEST, LATEST, AckedGroup, GroupBatch, NackedGroup


class GroupRig(Rig):
    def write_some(self, count: int = 1, partition: int = 0) -> None:
        self.driver.do(Append("t", Records.of([{"data": 0}] * count), partition))

    def ask(self, consumer: str = "", wait_ms: int = 0, limit: int = 10, **options: Any) -> Ticket:
        return self.engine.groups.consume(Consume("t", "g", consumer=consumer, limit=limit, **options), wait_ms)

    def take(self, consumer: str = "", limit: int = 10, **options: Any) -> list[int]:
        return seqs(self.driver.wait(self.ask(consumer, 0, limit, **options)))

    def advance(self, ms: int) -> None:
        """Time passes, as a host lets it."""
        self.clock.advance(ms)
        deadline_ms = self.engine.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= self.clock.now_ms():
            self.engine.tick()
        self.work()

    def push(self, consumer: str = "", claims_max: int = 1, limit: int = 2) -> tuple[Stream, list[Any]]:
        told: list[Any] = []
        command = Consume("t", "g", consumer=consumer, limit=limit)
        stream = self.engine.groups.open(command, claims_max, told.append, told.append)
        self.work()
        return stream, told


def rig(**config: Any) -> GroupRig:
    made = GroupRig()
    made.configure("t", visibility_ms=100, **config)
    return made


def seqs(batch: object) -> list[int]:
    assert isinstance(batch, GroupBatch)
    return [record.seq for record in batch.records]


def committed(reply: object) -> int:
    assert isinstance(reply, GroupBatch | AckedGroup | NackedGroup)
    return reply.committed_seq


def test_who_waits_is_served_when_records_become_visible_in_the_order_they_came() -> None:
    one = rig()
    first, second = one.ask("a", 1000, 1), one.ask("b", 1000, 1)
    one.work()
    assert not first.done and one.engine.groups.waiting_count() == 2
    one.write_some(1)
    one.work()
    assert first.done and not second.done
    assert seqs(first.result()) == [1]
    one.write_some(1)
    one.work()
    assert seqs(second.result()) == [2] and not one.engine.groups.waiting_count()


def test_a_wait_that_is_over_is_answered_with_nothing() -> None:
    one = rig()
    waiting = one.ask("a", 500)
    one.advance(499)
    assert not waiting.done
    one.advance(1)
    batch = waiting.result()
    assert isinstance(batch, GroupBatch) and (batch.last_seq, batch.group, batch.consumer) == (0, "g", "a")


def test_a_claim_that_runs_out_goes_to_who_waits_for_it() -> None:
    one = rig()
    one.write_some(2)
    assert one.take("a") == [1, 2]
    waiting = one.ask("b", 1000)
    one.advance(100)
    assert not waiting.done
    one.advance(1)
    batch = waiting.result()
    assert isinstance(batch, GroupBatch) and (seqs(batch), batch.deliveries) == ([1, 2], 2)


@pytest.mark.parametrize("command", [NackGroup("t", "g", 2), ResetGroup("t", "g", LATEST), PauseGroup("t", "g", False)])
def test_what_is_given_back_reset_or_resumed_is_news(command: Any) -> None:
    one = rig()
    one.write_some(2)
    one.take("a")
    if isinstance(command, PauseGroup):
        one.driver.do(NackGroup("t", "g", 2))
        one.driver.do(PauseGroup("t", "g", True))
    waiting = one.ask("b", 1000)
    one.driver.do(command)
    if isinstance(command, ResetGroup):
        one.write_some(1)
    one.work()
    assert seqs(waiting.result()) == ([3] if isinstance(command, ResetGroup) else [1, 2])


def test_who_goes_away_leaves_nothing_claimed() -> None:
    one = rig()
    waiting = one.ask("a", 1000)
    assert one.engine.groups.cancel(waiting)
    one.write_some(1)
    assert one.engine.groups.state("t", "g").in_flight == 0
    served = one.ask("a", 1000)
    assert not one.engine.groups.cancel(served), "it has got something already"
    one.work()
    state = one.engine.groups.state("t", "g")
    assert (state.in_flight, state.waiting) == (0, 1), "which is given back"


def test_who_goes_away_leaves_its_place_and_no_other() -> None:
    one = rig()
    first, second = one.ask("a", 1000), one.ask("b", 1000)
    assert one.engine.groups.cancel(second) and one.engine.groups.waiting_count() == 1
    one.write_some(1)
    one.work()
    assert seqs(first.result()) == [1] and not second.done


@pytest.mark.parametrize("command", [DropGroup("t", "g"), Drop("t"), None], ids=["group", "topic", "disk"])
def test_what_was_handed_to_who_went_away_may_be_gone_before_it_is_given_back(command: Any) -> None:
    one = rig(leases_durable=True)
    one.write_some(1)
    served = one.ask("a")
    assert not served.done and not one.engine.groups.cancel(served)
    if command is None:
        one.fs.fail("write_at", path="*/1-*.wal", always=True)
    else:
        one.engine.submit(command)
    one.work()
    assert served.done and isinstance(served.error, LogStopped) == (command is None)


def test_a_stream_that_has_ended_stays_so() -> None:
    one = rig()
    one.write_some(1)
    stream, told = one.push("a")
    assert [seqs(batch) for batch in told] == [[1]]
    for _ in range(2):
        stream.close()
    stream.pause()
    stream.resume()
    one.write_some(1)
    one.work()
    assert (len(told), one.take("b"), one.take("b")) == (1, [1], [2])


def test_those_who_wait_are_told_when_the_group_or_the_topic_is_gone() -> None:
    one = rig()
    waiting = one.ask("a", 1000)
    one.driver.do(DropGroup("t", "g"))
    assert isinstance(waiting.error, GroupNotFound)
    waiting = one.ask("a", 1000)
    one.driver.do(Drop("t"))
    assert isinstance(waiting.error, TopicNotFound)


def test_a_closing_engine_lets_everybody_go() -> None:
    one = rig()
    waiting = one.ask("a", 1000)
    one.engine.stop()
    assert waiting.done and waiting.error is None
    with pytest.raises(ShuttingDown):
        one.ask("a")


def test_nobody_is_answered_before_it_is_durable_where_the_group_began() -> None:
    one = rig(durability="disk")
    one.write_some(2)
    first = one.ask("a", limit=1)
    second = one.ask("b", limit=1)
    one.engine.flush()
    # As the commit log reports it: all is written, nothing is synced.
    one.engine.written(one.engine.wal.shard_of(1), 1_000_000)
    assert not first.done and not second.done
    one.work()
    assert (seqs(first.result()), seqs(second.result())) == ([1], [2])


def test_all_partitions_have_their_turn() -> None:
    one = rig(partitions=3)
    for partition in range(3):
        one.write_some(2, partition)
    groups = one.engine.groups
    command = Consume("t", "g", limit=1)
    got = [one.driver.wait(groups.consume_anywhere(command)) for _ in range(7)]
    assert sorted(
        (batch.partition, *seqs(batch)) for batch in got if isinstance(batch, GroupBatch) and batch.count
    ) == [(partition, seq) for partition in range(3) for seq in (1, 2)]
    assert isinstance(got[-1], GroupBatch) and not got[-1].last_seq
    waiting = groups.consume_anywhere(command, 1000)
    one.write_some(1, 2)
    one.work()
    assert seqs(waiting.result()) == [3]


def test_several_partitions_answer_together_within_one_limit() -> None:
    one = rig(partitions=2)
    one.write_some(2, 0)
    one.write_some(2, 1)
    commands = [Consume("t", "g", partition, limit=3) for partition in range(2)]
    batches = one.driver.wait(one.engine.groups.consume_any(commands))
    assert isinstance(batches, tuple)
    assert [batch.partition for batch in batches] == [0, 1]
    assert sorted(batch.count for batch in batches) == [1, 2]
    waiting = one.engine.groups.consume_any(commands, 1000)
    one.work()
    assert waiting.done, "one record was left"


@pytest.mark.parametrize("full", [0, 1])
def test_the_first_contact_with_one_of_several_partitions_is_one_with_all(full: int) -> None:
    one = rig(partitions=2)
    one.write_some(3, full)
    other = 1 - full
    commands = [Consume("t", "g", at, limit=1, start=LATEST if at == other else None) for at in range(2)]
    one.driver.wait(one.engine.groups.consume_any(commands))
    one.write_some(2, other)
    batches = [one.driver.wait(one.engine.groups.consume_any(commands)) for _ in range(4)]
    got = sorted((batch.partition, *seqs(batch)) for found in batches if isinstance(found, tuple) for batch in found)
    assert got == sorted([(full, 2), (full, 3), (other, 1), (other, 2)]), "what came there since then is not skipped"


def test_what_is_wrong_with_one_of_several_changes_nothing() -> None:
    one = rig(partitions=2)
    with pytest.raises(InvalidRequest):
        one.engine.groups.consume_any([Consume("t", "g", 0), Consume("t", "g", 1, limit=0)])
    assert one.engine.groups.list("t") == []


# ---- streams


def test_a_stream_is_kept_at_its_bound() -> None:
    one = rig()
    one.write_some(6)
    stream, told = one.push(claims_max=2)
    assert [seqs(batch) for batch in told] == [[1, 2], [3, 4]]
    one.driver.do(AckGroup("t", "g", 1))
    one.work()
    assert len(told) == 2, "a part of a claim is still a claim"
    one.driver.do(AckGroup("t", "g", 2))
    one.work()
    assert seqs(told[2]) == [5, 6]
    assert one.engine.groups.stream_count() == 1
    stream.close()
    one.work()
    assert one.engine.groups.state("t", "g").waiting == 4 and not one.engine.groups.stream_count()
    stream.close()


def test_what_runs_out_on_a_stream_makes_room() -> None:
    one = rig()
    one.write_some(4)
    _, told = one.push()
    one.advance(101)
    assert [seqs(batch) for batch in told] == [[1, 2], [1, 2]] and told[1].deliveries == 2


def test_a_stream_that_is_full_gets_nothing_until_it_has_room() -> None:
    one = rig()
    stream, told = one.push()
    stream.pause()
    one.write_some(2)
    one.work()
    assert not told
    stream.resume()
    one.work()
    assert seqs(told[0]) == [1, 2]


def test_a_topic_that_goes_while_a_group_begins() -> None:
    """The first contact is not safe yet when the topic is gone: who asked is told, and nobody else is held up."""
    one = rig(partitions=2)
    asked = one.engine.groups.consume_any([Consume("t", "g", 0), Consume("t", "g", 1)])
    dropped = one.engine.submit(Drop("t"))
    assert not asked.done
    one.work()
    with pytest.raises(TopicNotFound):
        asked.result()
    assert dropped.done and dropped.error is None


def test_streams_are_told_when_their_group_is_dropped() -> None:
    one = rig()
    _, told = one.push()
    one.driver.do(ResetGroup("t", "g", LATEST))
    one.driver.do(DropGroup("t", "g"))
    assert isinstance(told[0], TopicsError) and not one.engine.groups.stream_count()


# ---- what is known after a restart


def test_groups_are_known_after_a_restart_and_after_a_crash() -> None:
    one = rig(durability="fsync")
    one.write_some(4)
    one.take("a", 2)
    one.driver.do(AckGroup("t", "g", 1))
    before = one.engine.groups.state("t", "g")
    assert one.engine.groups.topics() == ["t"]
    for end in (one.stop, one.kill, one.crash):
        end()
        assert one.engine.groups.state("t", "g") == before
        assert one.engine.groups.topics() == ["t"]


def test_groups_of_an_ephemeral_topic_survive_a_clean_stop_and_are_told_of_the_loss() -> None:
    one = rig(durability="ephemeral")
    one.write_some(4)
    one.take("a", 2)
    one.driver.do(AckGroup("t", "g", 2))
    one.stop()
    state = one.engine.groups.state("t", "g")
    assert state.committed_seq == 4
    batch = one.driver.wait(one.ask("b"))
    assert isinstance(batch, GroupBatch) and batch.tombstone is not None
    assert (batch.tombstone.gap_from, batch.tombstone.gap_to, batch.tombstone.reason) == (3, 4, "restart")


@pytest.mark.parametrize("durability", ["disk", "fsync"])
def test_who_acks_again_is_answered_when_the_first_ack_is_safe(durability: str) -> None:
    one = rig(durability=durability)
    one.write_some()
    assert one.take() == [1]
    first, again = one.engine.submit(AckGroup("t", "g", 1)), one.engine.submit(AckGroup("t", "g", 1))
    assert not first.done and not again.done
    one.driver.wait(first)
    acked = one.driver.wait(again)
    assert isinstance(acked, AckedGroup) and (acked.acked, acked.committed_seq) == (0, 1)
    assert one.driver.wait(one.engine.submit(AckGroup("t", "g", 1))) == acked, "and at once when it is"


@pytest.mark.parametrize("durability", ["disk", "fsync"])
def test_what_an_ack_did_is_told_to_others_when_it_is_safe(durability: str) -> None:
    one = rig(durability=durability)
    one.write_some(2)
    groups = one.engine.groups
    assert one.take(limit=1) == [1] and one.take("b", limit=1) == [2]
    acks = [one.engine.submit(AckGroup("t", "g", seq)) for seq in (1, 2)]
    asked = [one.ask("c"), one.ask("c", 1000), one.engine.submit(NackGroup("t", "g", 2))]
    groups.end_waiting()
    assert groups.state("t", "g").committed_seq == groups.list("t")[0].committed_seq == 0
    assert not any(ack.done for ack in acks) and [committed(one.driver.wait(ticket)) for ticket in asked] == [0, 0, 0]
    assert [committed(one.driver.wait(ack)) for ack in acks] == [1, 2]
    asked = [one.ask("c"), one.engine.submit(NackGroup("t", "g", 2))]
    assert [committed(one.driver.wait(ticket)) for ticket in asked] == [2, 2]
    assert groups.state("t", "g").committed_seq == groups.list("t")[0].committed_seq == 2


def test_who_consumes_is_answered_when_a_reset_is_safe() -> None:
    one = rig()
    one.write_some(2)
    assert one.take() == [1, 2]
    one.driver.do(AckGroup("t", "g", 2))
    reset = one.engine.submit(ResetGroup("t", "g", EARLIEST))
    asked = one.ask()
    assert not reset.done and not asked.done
    assert seqs(one.driver.wait(asked)) == [1, 2] and reset.done
    one.write_some(2)
    reset = one.engine.submit(ResetGroup("t", "g", LATEST))
    asked = one.ask()
    assert not reset.done and not asked.done, "also when there is nothing to hand out"
    batch = one.driver.wait(asked)
    assert seqs(batch) == [] and committed(batch) == 4 and reset.done


def test_any_of_one_partition_is_that_one() -> None:
    one = rig()
    one.write_some(2)
    assert seqs(one.driver.wait(one.engine.groups.consume_anywhere(Consume("t", "g", partition=0)))) == [1, 2]


def test_only_so_many_wait_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping, "CLAIMERS_MAX", 1)
    one = rig()
    first = one.ask("a", 1000)
    with pytest.raises(Throttled, match="1 consumers wait") as refused:
        one.ask("b", 1000)
    assert refused.value.detail["limit"] == "claimers" and one.engine.groups.waiting_count() == 1
    one.write_some(1)
    one.work()
    assert seqs(first.result()) == [1]


def test_who_waits_while_too_much_is_out_is_served_when_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topics.core.consume.GROUP_RANGES_MAX", 1)
    one = rig()
    one.write_some(1)
    assert one.take("a", visibility_ms=10_000) == [1]
    waiting = one.ask("b", 5000)
    one.write_some(1)
    one.work()
    assert not waiting.done and one.engine.groups.waiting_count() == 1
    one.advance(grouping.RETRY_MS)
    assert not waiting.done
    one.driver.do(AckGroup("t", "g", 1))
    one.advance(grouping.RETRY_MS)
    assert seqs(waiting.result()) == [2]


def test_those_who_wait_for_a_disk_that_failed_are_told() -> None:
    one = rig()
    one.write_some(2)
    assert one.take("a") == [1, 2]
    waiting = one.ask("b", 5000)
    stream, told = one.push("c")
    one.fs.fail("write_at", path="*/1-*.wal", always=True)
    with pytest.raises(LogStopped):
        one.write_some(1)
    one.advance(101)
    with pytest.raises(LogStopped):
        waiting.result()
    assert [type(each) for each in told] == [LogStopped] and not stream.is_open
    assert not one.engine.groups.waiting_count()


def test_what_comes_for_a_stream_that_has_gone_is_given_back() -> None:
    one = rig(leases_durable=True)
    stream, told = one.push("a")
    one.engine.submit(Append("t", Records.of([{"data": 0}])))
    while not stream.is_served:
        one.engine.flush()
        one.driver.wal.work()
        one.engine.groups.serve()
    stream.close()
    one.work()
    assert told == [] and one.take("b") == [1], "at once, and not when the claim has run out"


# ---- on a loop


async def begun(wait: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
    task = asyncio.create_task(wait)
    await asyncio.sleep(0)
    return task


async def given_up(wait: Coroutine[Any, Any, Any]) -> None:
    task = await begun(wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_consume_waits_for_a_record_and_takes_none_when_it_is_given_up(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as host:
            await host.submit(Configure("t", {}))
            assert (await host.consume(Consume("t", "g"), wait_ms=1)).count == 0
            await given_up(host.consume(Consume("t", "g", consumer="a"), wait_ms=30_000))
            waiting = await begun(host.consume(Consume("t", "g", consumer="b"), wait_ms=30_000))
            await host.submit(Append("t", records(1)))
            batch = await waiting
            assert (batch.consumer, batch.count) == ("b", 1)

    run(test)


def test_records_of_several_partitions(tmp_path: Path) -> None:
    async def test() -> None:
        async with opened(tmp_path) as host:
            await host.submit(Configure("t", {"partitions": 3}))
            for partition in range(3):
                await host.submit(ResetGroup("t", "g", EARLIEST, partition))
            waiting = await begun(host.consume(Consume("t", "g"), wait_ms=30_000, anywhere=True))
            await host.submit(Append("t", records(1), 2))
            assert (await waiting).partition == 2
            commands = [Consume("t", "g", partition=partition) for partition in range(3)]
            await host.submit(Append("t", records(2), 0))
            await given_up(host.consume_any(commands, wait_ms=30_000))
            batches = await host.consume_any(commands, wait_ms=30_000)
            assert [(batch.partition, batch.count) for batch in batches] == [(0, 1)]

    run(test)
