from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import topics
from tests.client.rig import on_loop, settle, soon, take
from tests.contract.sdk import each_form, opened, opened_in_time, written_at_two_times
from topics import Durability, Page, Reason, Record, errors
from topics.core.partition import partition_of


def datas(page: Page) -> list[object]:
    return [record.data for record in page.records]


# ---- the topic itself


@each_form
@on_loop
async def test_create_gives_every_field_its_value(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        made = await client.topic("orders").create(ttl_ms=60_000, durability="fsync")
        assert (made.topic, made.created) == ("orders", True)
        assert made.config == topics.TopicConfig(ttl_ms=60_000, durability=Durability.FSYNC)


@each_form
@on_loop
async def test_create_again_replaces_and_configure_merges(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.create(ttl_ms=60_000, cap_records=5)
        merged = await orders.configure(cap_records=9)
        assert (merged.created, merged.config.ttl_ms, merged.config.cap_records) == (False, 60_000, 9)
        replaced = await orders.create(cap_bytes=1000)
        assert replaced.config == topics.TopicConfig(cap_bytes=1000)


@each_form
@on_loop
async def test_one_of_many_creates_it_and_the_others_leave_it(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        made = await asyncio.gather(*(orders.create(if_missing=True, ttl_ms=ttl_ms) for ttl_ms in range(1, 9)))
        (first,) = [each for each in made if each.created]
        assert {each.config for each in made} == {first.config} and 1 <= first.config.ttl_ms <= 8
        assert (await orders.state()).config == first.config


@each_form
@on_loop
async def test_configure_does_not_create(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        with pytest.raises(errors.TopicNotFound, match='"orders" does not exist'):
            await client.topic("orders").configure(ttl_ms=1)
        assert [state async for state in client.topics()] == []


@each_form
@on_loop
async def test_a_wrong_config_is_refused_by_name(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        with pytest.raises(errors.InvalidRequest, match="ttl_ms must be an integer") as refused:
            await orders.create(ttl_ms=-1)
        assert refused.value.detail["field"] == "ttl_ms"
        with pytest.raises(errors.InvalidRequest, match=r"no field ttl; did you mean ttl_ms\?"):
            await orders.create(ttl=5)
        with pytest.raises(errors.InvalidRequest, match=r"no field cap_record; did you mean cap_records\?"):
            await orders.write(1, config={"cap_record": 5})
        await orders.create()
        with pytest.raises(errors.TopicExistsIncompatible, match="partitions"):
            await orders.configure(partitions=2)


@each_form
@on_loop
async def test_a_bad_name_is_refused(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        with pytest.raises(errors.InvalidRequest, match="is not a topic name"):
            await client.topic("no spaces").write(1)


@each_form
@on_loop
async def test_state_counts_what_is_there(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": "abc"}, {"data": 1, "meta": {"k": "v"}}])
        state = await orders.state(touch=False)
        assert (state.head_seq, state.earliest_seq, state.next_seq) == (2, 1, 3)
        assert (state.count, state.bytes) == (2, len('"abc"') + len("1") + len('{"k":"v"}'))
        assert state.last_read_ts is None
        assert (await orders.state()).last_read_ts is not None


@each_form
@on_loop
async def test_drop_and_recreate_start_anew(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": n} for n in range(3)], config={"ttl_ms": 60_000})
        with pytest.raises(errors.TopicNotEmpty, match="holds 3 records"):
            await orders.drop(if_empty=True)
        assert (await orders.drop()).deleted
        assert not (await orders.drop()).deleted
        with pytest.raises(errors.TopicNotFound):
            await orders.diff()
        written = await orders.write("new")
        assert (written.first_seq, written.created) == (1, True)
        page = await orders.diff(from_seq=3)
        assert page.tombstone is not None and page.tombstone.reason is Reason.RECREATED
        assert datas(page) == ["new"]
        assert (await orders.state()).config.ttl_ms == 0


@each_form
@on_loop
async def test_an_archive_says_how_far_it_is(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.create(cap_records=2, protect_unarchived=True)
        await orders.write_many([{"data": n} for n in range(5)])
        reported = await orders.report_archive("s3", 3, location="s3://bucket/orders")
        assert (reported.archive, reported.upto_seq, reported.behind) == ("s3", 3, 2)
        late = await orders.report_archive("s3", 1, location="s3://bucket/orders")
        assert late.upto_seq == 3, "a report never goes back"
        state = await orders.state()
        assert (state.earliest_seq, [each.archive for each in state.archives]) == (4, ["s3"])
        with pytest.raises(errors.TopicRecreated):
            await orders.report_archive("s3", 4, epoch=99)
        with pytest.raises(errors.InvalidRequest, match="upto_seq"):
            await orders.report_archive("s3", 9)
        assert (await orders.drop_archive("s3")).dropped
        assert not (await orders.drop_archive("s3")).dropped
        with pytest.raises(errors.TopicNotFound):
            await client.topic("none").report_archive("s3", 1)


# ---- writing


@each_form
@on_loop
async def test_the_first_write_creates_the_topic(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        first = await orders.write({"sku": "A1"}, config={"durability": "fsync"})
        assert (first.first_seq, first.last_seq, first.created) == (1, 1, True)
        second = await orders.write({"sku": "B2"}, config={"durability": "memory"})
        assert (second.first_seq, second.created) == (2, False)
        assert (await orders.state()).config.durability is Durability.FSYNC


@each_form
@on_loop
async def test_a_write_may_insist_that_the_topic_exists(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        with pytest.raises(errors.TopicNotFound, match="may not create it"):
            await client.topic("ordres").write(1, create=False)


@each_form
@on_loop
async def test_a_record_comes_back_as_it_was_written(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        data = {"text": "Grüße", "list": [1, 2.5, None, True], "nested": {"a": {}}}
        await orders.write(data, tag="order-1", node="n1", meta={"trace": "z9"})
        (record,) = (await orders.diff()).records
        assert isinstance(record, Record) and record.ts > 0
        assert (record.seq, record.data, record.tag, record.node) == (1, data, "order-1", "n1")
        assert record.meta == {"trace": "z9"}


@each_form
@on_loop
async def test_write_many_is_atomic_and_in_order(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        written = await orders.write_many(
            ({"data": n, "node": "own" if n == 1 else None} for n in range(4)), node="all"
        )
        assert written.seqs == range(1, 5) and written.count == 4
        assert [record.node for record in (await orders.diff()).records] == ["all", "own", "all", "all"]
        with pytest.raises(errors.InvalidRequest, match=r"records\[1\]\.tag must be"):
            await orders.write_many([{"data": 5}, {"data": 6, "tag": 7}])
        with pytest.raises(errors.InvalidRequest, match=r"records\[1\] has no field tags; did you mean tag\?"):
            await orders.write_many([{"data": 5}, {"data": 6, "tags": "x"}])
        assert (await orders.state()).head_seq == 4


@each_form
@on_loop
async def test_data_that_is_no_json_is_refused(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        with pytest.raises(errors.InvalidRequest, match=r"records\[0\]\.data cannot be written as JSON"):
            await client.topic("orders").write(object())


@each_form
@on_loop
async def test_a_repeated_write_is_answered_and_not_appended(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        for name in ({"idempotency_key": "k1"}, {"producer": ("p", 1, 7)}):
            first = await orders.write("once", **name)
            again = await orders.write("once", **name)
            assert (first.deduped, again.deduped) == (False, True)
            assert again.seqs == first.seqs
        assert (await orders.state()).head_seq == 2
        await orders.write("newer", producer=("p", 2, 0))
        with pytest.raises(errors.ProducerFenced):
            await orders.write("late", producer=("p", 1, 8))
        assert (await orders.state()).head_seq == 3


@each_form
@on_loop
async def test_a_write_has_one_name_only(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        with pytest.raises(errors.InvalidRequest, match="give one of them"):
            await orders.write(1, idempotency_key="k", producer=("p", 1, 1))
        with pytest.raises(errors.InvalidRequest, match=r"producer must be \("):
            await orders.write(1, producer=("p", 1))
        with pytest.raises(errors.InvalidRequest, match="give one of them"):
            await orders.write(1, partition=0, key="k")


@each_form
@on_loop
async def test_a_full_topic_refuses_when_told_to(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        jobs = client.topic("jobs")
        await jobs.create(cap_records=1, discard="reject")
        await jobs.write(1)
        with pytest.raises(errors.TopicFull):
            await jobs.write(2)
        assert datas(await jobs.diff()) == [1]


@each_form
@on_loop
async def test_each_partition_is_a_log_of_its_own(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        events = client.topic("events")
        await events.create(partitions=4)
        for partition in (0, 3, 3):
            await events.write(partition, partition=partition)
        assert [(await events.state(partition=p)).count for p in range(4)] == [1, 0, 0, 2]
        assert datas(await events.diff(partition=3)) == [3, 3]
        with pytest.raises(errors.InvalidRequest, match="has partitions 0 to 3, not 4"):
            await events.write(1, partition=4)
        stream = events.follow(partition=3)
        assert [event.seq for event in await take(stream, 2) if isinstance(event, Record)] == [1, 2]
        await events.delete(before_seq=2, partition=3)
        assert (await events.state(partition=3)).count == 1


@each_form
@on_loop
async def test_a_key_picks_its_partition(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        events = client.topic("events")
        first = await events.write(1, key="customer-1", config={"partitions": 8})
        assert first.partition == partition_of("customer-1", 8) > 0
        for key in ("a", "b", "c"):
            assert (await events.write(1, key=key)).partition == partition_of(key, 8)


# ---- reading


@each_form
@on_loop
async def test_diff_goes_on_where_it_ended(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": n} for n in range(5)])
        page = await orders.diff(from_seq=0, limit=3)
        assert (datas(page), page.next_from_seq, page.caught_up, page.lag) == ([0, 1, 2], 3, False, 2)
        page = await orders.diff(from_seq=page.next_from_seq, limit=3)
        assert (datas(page), page.next_from_seq, page.caught_up) == ([3, 4], 5, True)
        for wrong in ({"limit": -1}, {"from_seq": -1}):
            with pytest.raises(errors.InvalidRequest) as refused:
                await orders.diff(**wrong)
            assert refused.value.detail["field"] == next(iter(wrong))


@each_form
@on_loop
async def test_a_page_is_bounded_in_bytes(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": "x" * 1000} for _ in range(5)])
        assert (await orders.diff(max_batch_bytes=2500)).count == 2


@each_form
@on_loop
async def test_diff_leaves_out_what_was_not_asked_for(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.write(1, tag="a:1", node="n1", meta={"k": "v"})
        await orders.write(2, tag="b:1", node="n2")
        await orders.write(3)
        untagged = (await orders.diff(include_tags=False)).records[0]
        assert (untagged.tag, untagged.meta, untagged.node) == (None, {"k": "v"}, "n1")
        bare = (await orders.diff(include_meta=False)).records[0]
        assert (bare.tag, bare.meta, bare.node) == ("a:1", None, "n1")
        others = await orders.diff(node="n1")
        assert (datas(others), others.next_from_seq) == ([2, 3], 3)
        assert datas(await orders.diff(node=["n1", "n2"])) == [3]
        assert datas(await orders.diff(match="b:1")) == [2]
        assert datas(await orders.diff(match=["tag", "Glob", "a:*"])) == [1]
        with pytest.raises(errors.InvalidRequest, match="match must be"):
            await orders.diff(match=["tag", "a"])


@each_form
@on_loop
async def test_a_page_tells_what_the_cap_took(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        recent = client.topic("recent")
        await recent.create(cap_records=2)
        await recent.write_many([{"data": n} for n in range(1, 6)])
        page = await recent.diff(from_seq=1)
        assert page.tombstone is not None
        assert (page.tombstone.gap_from, page.tombstone.gap_to, page.tombstone.reason) == (2, 3, Reason.CAP)
        assert datas(page) == [4, 5]


@each_form
@on_loop
async def test_a_loss_is_told_whoever_wrote_what_is_lost(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        recent = client.topic("recent")
        await recent.create(cap_records=2)
        await recent.write_many([{"data": n, "node": "me"} for n in range(1, 6)])
        page = await recent.diff(node="me")
        assert page.tombstone is not None and (page.tombstone.gap_from, page.tombstone.gap_to) == (1, 3)
        assert (page.count, page.next_from_seq) == (0, 5)


@each_form
@on_loop
async def test_diff_waits_for_a_record_and_no_longer(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.create()
        waiting = asyncio.create_task(orders.diff(wait_ms=30_000))
        await settle()
        assert not waiting.done()
        await orders.write("come")
        assert datas(await soon(waiting)) == ["come"]
        nothing = await soon(orders.diff(from_seq=1, wait_ms=1))
        assert (nothing.count, nothing.caught_up) == (0, True)


@each_form
@on_loop
async def test_a_wait_is_not_ended_by_what_the_reader_does_not_want(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.create()
        waiting = asyncio.create_task(orders.diff(wait_ms=30_000, node="me"))
        await orders.write("mine", node="me")
        await settle()
        assert not waiting.done()
        await orders.write("theirs", node="them")
        page = await soon(waiting)
        assert (datas(page), page.next_from_seq) == (["theirs"], 2)


@each_form
@on_loop
async def test_a_time_is_a_place_to_read_from(tmp_path: Path, form: str) -> None:
    async with opened_in_time(form, tmp_path) as client:
        orders = client.topic("orders")
        early, late = await written_at_two_times(orders)
        everything = (await orders.diff()).records
        for time in (early, late):
            found = await orders.diff(from_ts=time)
            assert found.records == [record for record in everything if record.ts >= time]
        assert (await orders.diff(from_ts=0)).records == everything
        beyond = await orders.diff(from_ts=late + 1_000_000)
        assert (beyond.count, beyond.caught_up, beyond.next_from_seq) == (0, True, everything[-1].seq)
        both = await orders.diff(everything[-1].seq - 1, from_ts=early)
        assert both.records == everything[-1:], "the later of both"


@each_form
@pytest.mark.parametrize("time", [-1, 2**64, 1.5, "10m", True])
@on_loop
async def test_a_time_that_is_none_is_refused(tmp_path: Path, form: str, time: Any) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.write(1)
        with pytest.raises(errors.InvalidRequest, match="from_ts must be whole milliseconds since 1970, not"):
            await orders.diff(from_ts=time)
        with pytest.raises(errors.InvalidRequest, match="from_ts must be whole milliseconds since 1970, not"):
            orders.follow(from_ts=time)


# ---- deleting


@each_form
@on_loop
async def test_delete_by_seq_by_tag_and_by_both(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.write_many([{"data": n, "tag": tag} for n, tag in enumerate(("a:1", "b", "a:2", "a:1", "c"), 1)])
        would = await orders.delete(before_seq=4, match="a:1", dry_run=True, erase=True)
        assert (would.deleted, would.dry_run, would.erased) == (1, True, False)
        assert (await orders.delete(before_seq=4, match="a:1")).deleted == 1
        assert datas(await orders.diff()) == [2, 3, 4, 5]
        assert (await orders.delete(match=["tag", "Glob", "a:*"])).deleted == 2
        done = await orders.delete(before_seq=5)
        assert (done.deleted, done.earliest_seq, done.count, done.erased) == (1, 5, 1, False)
        page = await orders.diff()
        assert (datas(page), page.tombstone) == ([5], None)
        with pytest.raises(errors.InvalidRequest, match="before_seq, match, or both"):
            await orders.delete()
        with pytest.raises(errors.InvalidRequest, match="before_seq must be a whole number from 0 to") as refused:
            await orders.delete(before_seq=-3)
        assert (refused.value.detail["field"], refused.value.detail["value"]) == ("before_seq", "-3")


@each_form
@on_loop
async def test_a_delete_is_about_what_is_there_now(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        orders = client.topic("orders")
        await orders.write(1, tag="t")
        await orders.delete(match="t")
        await orders.write(2, tag="t")
        assert datas(await orders.diff()) == [2]


@each_form
@on_loop
async def test_erase_takes_the_bytes_from_the_disk(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        people = client.topic("people")
        await people.write("a very private remark", tag="p1")
        await people.write("stays", tag="p2")
        assert (await people.delete(match="p1", erase=True)).erased
        left = [path for path in tmp_path.rglob("*") if path.is_file() and b"a very private" in path.read_bytes()]
        assert left == []
        assert datas(await people.diff()) == ["stays"]


@each_form
@on_loop
async def test_bytes_come_back_with_what_they_are(tmp_path: Path, form: str) -> None:
    async with opened(form, tmp_path) as client:
        images = client.topic("images")
        await images.write(b"\x89PNG", content_type="image/png")
        (record,) = (await images.diff()).records
        assert (record.data, record.meta["content-type"]) == (b"\x89PNG", "image/png")
