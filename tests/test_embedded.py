from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from pathlib import Path

import pytest

import topics
from tests.client.rig import on_loop, settle, soon
from topics import Reason, errors
from topics.settings import TABLE

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in TABLE:
        monkeypatch.delenv(setting.variable, raising=False)


# ---- opening and closing


@on_loop
async def test_a_directory_is_made_when_it_is_not_there(tmp_path: Path) -> None:
    async with topics.open(str(tmp_path / "new" / "data")) as client:
        await client.topic("t").write(1)
    assert (tmp_path / "new" / "data" / "wal").is_dir()


@on_loop
async def test_what_was_written_is_there_after_a_restart(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        orders = client.topic("orders")
        await orders.create(ttl_ms=600_000, partitions=2)
        await orders.write_many([{"data": n, "tag": f"t{n}", "node": "n1", "meta": {"k": "v"}} for n in range(5)])
        await orders.write("once", idempotency_key="k1", partition=1)
        await orders.delete(match="t0")
        before = await orders.diff()
        states = [await orders.state(partition=p, touch=False) for p in range(2)]
    for _ in range(2):
        async with topics.open(tmp_path) as client:
            orders = client.topic("orders")
            after = [await orders.state(partition=p, touch=False) for p in range(2)]
            assert [(s.head_seq, s.earliest_seq, s.count, s.bytes, s.config) for s in after] == [
                (s.head_seq, s.earliest_seq, s.count, s.bytes, s.config) for s in states
            ]
            assert (await orders.diff()).records == before.records
            assert (await orders.write("once", idempotency_key="k1", partition=1)).deduped


@on_loop
async def test_ephemeral_records_end_with_the_process_and_readers_are_told(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        await client.topic("scratch").write_many([{"data": 1}, {"data": 2}], config={"durability": "ephemeral"})
    async with topics.open(tmp_path) as client:
        scratch = client.topic("scratch")
        assert (await scratch.write(3)).first_seq == 3
        page = await scratch.diff()
        assert page.tombstone is not None
        assert (page.tombstone.gap_from, page.tombstone.gap_to, page.tombstone.reason) == (1, 2, Reason.RESTART)


@on_loop
async def test_ephemeral_records_of_a_topic_that_was_durable_reach_no_file(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        await client.topic("t").write(1, config={"durability": "disk"})
        await client.topic("t").configure(durability="ephemeral")
        await client.topic("t").write("SECRET")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 3 and not [path for path in files if b"SECRET" in path.read_bytes()]
    async with topics.open(tmp_path) as client:
        page = await client.topic("t").diff(from_seq=1)
        assert page.tombstone is not None and page.tombstone.gap_to == 2


@on_loop
async def test_a_second_client_of_the_same_directory_is_refused(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        with pytest.raises(errors.DirectoryLocked, match=str(tmp_path)):
            async with topics.open(tmp_path):
                pass
        assert (await client.topic("t").write(1)).first_seq == 1
    async with topics.open(tmp_path) as client:
        assert (await client.topic("t").state()).count == 1


@on_loop
async def test_another_process_is_refused_and_told_who_holds_the_directory(tmp_path: Path) -> None:
    code = f"import topics; topics.sync.open({str(tmp_path)!r}).__enter__()"
    async with topics.open(tmp_path):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1
    assert f"DirectoryLocked: {tmp_path}" in done.stderr


@on_loop
async def test_a_client_is_used_while_it_is_open(tmp_path: Path) -> None:
    client = topics.open(tmp_path)
    with pytest.raises(errors.NotReady, match="async with"):
        await client.topic("t").write(1)
    async with client:
        await client.topic("t").write(1)
        with pytest.raises(errors.InvalidRequest, match="open already"):
            await client.__aenter__()
    with pytest.raises(errors.NotReady, match="async with"):
        await client.topic("t").diff()
    await client.close()
    async with client:
        assert (await client.topic("t").state()).count == 1


@on_loop
async def test_a_cancelled_open_lets_go_of_the_directory(tmp_path: Path) -> None:
    client = topics.open(tmp_path)
    opening = asyncio.create_task(client.__aenter__())
    while not (tmp_path / "lock").exists():
        await asyncio.sleep(0)
    opening.cancel()
    await soon(asyncio.wait({opening}))
    # It may have been faster than the cancelling; then there is something to close.
    await client.close()
    async with client:
        await client.topic("t").write(1)


@on_loop
async def test_a_cancelled_open_that_fails_is_cancelled_and_may_be_tried_again(tmp_path: Path) -> None:
    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: failures.append(context))
    client = topics.open(tmp_path)
    async with topics.open(tmp_path) as holder:
        opening = asyncio.create_task(client.__aenter__())
        # One turn: the directory is asked for, and nobody can have said yet that it is taken.
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await soon(opening)
        await holder.topic("t").write(1)
    del opening
    gc.collect()
    assert failures == [], "what went wrong is not left for the loop to complain of"
    async with client:
        assert (await client.topic("t").state()).count == 1


@on_loop
async def test_a_cancelled_close_goes_on_to_its_end(tmp_path: Path) -> None:
    client = topics.open(tmp_path)
    for turns in (1, 2, 5):
        await client.__aenter__()
        closing = asyncio.create_task(client.close())
        for _ in range(turns):
            await asyncio.sleep(0)
        closing.cancel()
        await soon(asyncio.wait({closing}))
    async with client:
        assert (await client.topic("t").write(1)).first_seq == 1


@on_loop
async def test_closing_wakes_the_readers_that_wait(tmp_path: Path) -> None:
    client = topics.open(tmp_path)
    async with client:
        orders = client.topic("orders")
        await orders.create()
        following = asyncio.create_task(anext(orders.follow()))
        waiting = asyncio.create_task(orders.diff(wait_ms=30_000))
        await settle()
    for reader in (following, waiting):
        with pytest.raises(errors.Unavailable):
            await soon(reader)


@on_loop
async def test_writes_under_way_are_answered_before_the_end(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        orders = client.topic("orders")
        await orders.create(durability="fsync")
        writes = [asyncio.create_task(orders.write(n)) for n in range(20)]
        await asyncio.sleep(0)
    done = await soon(asyncio.gather(*writes))
    assert [written.first_seq for written in done] == list(range(1, 21))
    async with topics.open(tmp_path) as client:
        assert (await client.topic("orders").state()).count == 20


# ---- settings


@on_loop
async def test_keywords_go_before_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOPICS_MAX_LIMIT", "2")
    monkeypatch.setenv("TOPICS_MAX_TAG_BYTES", "3")
    monkeypatch.setenv("TOPICS_DATA_DIR", str(tmp_path / "elsewhere"))
    async with topics.open(tmp_path / "here", max_limit=4) as client:
        topic = client.topic("t")
        await topic.write_many([{"data": n} for n in range(9)])
        assert (await topic.diff()).count == 4
        with pytest.raises(errors.InvalidRequest, match="tag has 4 bytes, at most 3"):
            await topic.write(1, tag="long")
    assert not (tmp_path / "elsewhere").exists()


def test_a_setting_that_cannot_be_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidSetting, match="wal_shard is not a setting; did you mean TOPICS_WAL_SHARDS"):
        topics.open(tmp_path, wal_shard=2)
    with pytest.raises(errors.InvalidSetting, match="TOPICS_WAL_SHARDS=0: expected a whole number"):
        topics.open(tmp_path, wal_shards=0)
    assert list(tmp_path.iterdir()) == []


@on_loop
async def test_limits_hold_for_a_write(tmp_path: Path) -> None:
    limits = {"max_batch_records": 3, "max_record_bytes": 50, "max_body_bytes": 60, "max_node_bytes": 2}
    async with topics.open(tmp_path, max_meta_bytes=10, **limits) as client:
        await client.topic("t").create()
        for records, kind in (
            ([{"data": 1}] * 4, errors.BatchTooLarge),
            ([{"data": "x" * 40}] * 2, errors.BatchTooLarge),
            ([{"data": "x" * 50}], errors.RecordTooLarge),
            ([{"data": 1, "meta": {"long": "enough"}}], errors.InvalidRequest),
            ([{"data": 1, "node": "abc"}], errors.InvalidRequest),
        ):
            with pytest.raises(kind):
                await client.topic("t").write_many(records)
            with pytest.raises(kind):
                await client.stage("s", "t", records)
        await client.topic("t").write_many([{"data": "x" * 18}] * 3)
        assert (await client.topic("t").state()).count == 3


@on_loop
async def test_records_move_to_the_cold_directory_and_are_read_there(tmp_path: Path) -> None:
    cold = tmp_path / "cold"
    for _ in range(3):
        async with topics.open(tmp_path / "hot", cold_dir=str(cold), cold_after_ms=0) as client:
            await client.topic("t").write("kept")
    assert list(cold.iterdir()) != []
    async with topics.open(tmp_path / "hot", cold_dir=str(cold)) as client:
        assert [record.data for record in (await client.topic("t").diff()).records] == ["kept"] * 3
