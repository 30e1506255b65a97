"""An archive over crashes at every point, without Spark: what is in the lake is what was in the topics, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from tests.spark.byhand import Archiver
from tests.spark.lakes import rows_of
from topics.errors import Conflict, Internal
from topics.spark.laketable import Lake
from topics.spark.server import Server
from topics.sync import Client


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "lake")


def write(client: Client, first: int, last: int, topic: str = "t") -> None:
    client.topic(topic).write_many([{"data": n} for n in range(first, last + 1)])


def datas(root: str) -> list[str]:
    return [row["data"] for row in rows_of(root)]


def test_batches_follow_each_other(spark_server: Server, topics_client: Client, root: str) -> None:
    write(topics_client, 1, 10)
    archiver = Archiver(spark_server, root)
    archiver.batch()
    (progress,) = topics_client.topic("t").state().archives
    assert (progress.archive, progress.upto_seq, progress.behind, progress.location) == ("lake", 10, 0, root)
    write(topics_client, 11, 12)
    archiver.batch()
    assert datas(root) == [str(n) for n in range(1, 13)]


@pytest.mark.parametrize("died", ["before the tasks", "within a task", "before the commit", "after the commit"])
def test_a_driver_that_dies(spark_server: Server, topics_client: Client, root: str, died: str) -> None:
    """The batch is run again exactly as it was logged, whatever the one before left."""
    write(topics_client, 1, 10)
    archiver = Archiver(spark_server, root)
    archiver.plan()
    if died == "within a task":
        first = archiver.reader.partitions(*archiver.offsets)[0]
        next(iter(archiver.reader.read(first)))
    elif died == "before the commit":
        archiver.tasks()
    elif died == "after the commit":
        archiver.commit(archiver.tasks(), told=False)
    write(topics_client, 11, 15)
    archiver.commit(archiver.tasks())
    archiver.batch()
    assert datas(root) == [str(n) for n in range(1, 16)]
    (progress,) = topics_client.topic("t").state().archives
    assert progress.upto_seq == 15


def test_limits_and_changed_splits(spark_server: Server, topics_client: Client, root: str) -> None:
    write(topics_client, 1, 23)
    archiver = Archiver(spark_server, root)
    while archiver.offsets[-1].get("t", {}).get("0", 0) < 23:
        archiver.plan(ReadMaxRows(10))
        archiver.tasks()
        archiver.commit(archiver.tasks())
    assert len(archiver.offsets) == 4
    assert datas(root) == [str(n) for n in range(1, 24)]


def test_a_second_query_goes_on_where_the_lake_ends(spark_server: Server, topics_client: Client, root: str) -> None:
    write(topics_client, 1, 10)
    first = Archiver(spark_server, root)
    first.batch()
    write(topics_client, 11, 14)
    Archiver(spark_server, root).batch()
    assert datas(root) == [str(n) for n in range(1, 15)]
    first.plan()
    with pytest.raises(Conflict, match="something else archives it as well"):
        first.commit(first.tasks())
    assert datas(root) == [str(n) for n in range(1, 15)]


def test_a_topic_that_the_checkpoint_does_not_know_and_the_lake_does(
    spark_server: Server, topics_client: Client, root: str
) -> None:
    write(topics_client, 1, 5)
    Archiver(spark_server, root).batch()
    write(topics_client, 6, 8)
    other = Archiver(spark_server, root)
    other.offsets = [{}]
    other.batch()
    assert datas(root) == [str(n) for n in range(1, 9)]


def test_protected_records_wait_for_the_lake(spark_server: Server, topics_client: Client, root: str) -> None:
    topics_client.topic("t").create(cap_records=2, protect_unarchived=True)
    write(topics_client, 1, 10)
    archiver = Archiver(spark_server, root)
    archiver.batch()
    assert topics_client.topic("t").state().count == 2
    assert datas(root) == [str(n) for n in range(1, 11)]


def test_what_was_lost_is_a_gap(spark_server: Server, topics_client: Client, root: str) -> None:
    topics_client.topic("t").create(cap_records=3)
    write(topics_client, 1, 10)
    archiver = Archiver(spark_server, root)
    archiver.batch()
    *gaps, eight, _, _ = rows_of(root)
    assert [(row["gap_from"], row["gap_to"], row["gap_reason"]) for row in gaps] == [
        (1, 3, "cap"),
        (4, 6, "cap"),
        (7, 7, "cap"),
    ]
    assert (eight["seq"], eight["gap_from"]) == (8, None)


def test_another_life_of_a_topic(spark_server: Server, topics_client: Client, root: str) -> None:
    write(topics_client, 1, 3)
    archiver = Archiver(spark_server, root)
    archiver.batch()
    topics_client.topic("t").drop()
    write(topics_client, 7, 8)
    archiver.batch()
    found = [(row["epoch"], row["data"]) for row in rows_of(root) if row["data"] is not None]
    (one, _), *_, (other, _) = found
    assert found == [*((one, str(n)) for n in (1, 2, 3)), (other, "7"), (other, "8")]
    assert other > one


def test_deleted_records_are_passed_over(spark_server: Server, topics_client: Client, root: str) -> None:
    write(topics_client, 1, 6)
    topics_client.topic("t").delete(before_seq=3)
    topics_client.topic("u").write(1)
    topics_client.topic("u").delete(before_seq=9)
    archiver = Archiver(spark_server, root)
    archiver.batch()
    assert [row["seq"] for row in rows_of(root)] == [3, 4, 5, 6]
    (progress,) = topics_client.topic("u").state().archives
    assert (progress.upto_seq, progress.behind) == (1, 0), "nothing is left to archive"


def test_jobs_of_a_queue(spark_server: Server, topics_client: Client, root: str) -> None:
    """What was done before it could be archived is deleted, as records are."""
    queue = topics_client.queue("jobs", node="me")
    queue.create()
    queue.put_many([{"data": n} for n in range(4)])
    first, _ = queue.claim(2)
    first.ack()
    Archiver(spark_server, root).batch()
    assert [(row["topic"], row["seq"], row["data"]) for row in rows_of(root)] == [
        ("jobs", 2, "1"),
        ("jobs", 3, "2"),
        ("jobs", 4, "3"),
    ]


def test_a_topic_that_is_gone_has_nothing_to_report_to(spark_server: Server, topics_client: Client, root: str) -> None:
    write(topics_client, 1, 3)
    archiver = Archiver(spark_server, root)
    archiver.plan()
    messages = archiver.tasks()
    topics_client.topic("t").drop()
    archiver.commit(messages)
    assert datas(root) == ["1", "2", "3"]


def test_a_batch_without_tasks_commits_nothing(spark_server: Server, topics_client: Client, root: str) -> None:
    write(topics_client, 1, 3)
    archiver = Archiver(spark_server, root)
    archiver.batch()
    version = Lake.open(root).version
    archiver.writer.commit([None], 1)
    assert Lake.open(root).version == version and datas(root) == ["1", "2", "3"]


def test_a_task_that_does_not_know_its_query_is_refused(spark_server: Server, root: str) -> None:
    with pytest.raises(Internal, match="does not say which query this is"):
        Archiver(spark_server, root).writer.write(iter([]))
