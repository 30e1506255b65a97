"""Records appended again, each once, over jobs that are begun twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from topics.errors import InvalidRequest
from topics.spark.redrive import Step, Wanted, begin, ends_of, redrive, steps_of
from topics.sync import Client
from topics.testing.served import RunningServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_job_says_where_it_ends(topics_server: RunningServer, topics_client: Client) -> None:
    topics_client.topic("t").create(partitions=2)
    topics_client.topic("t").write_many([{"data": n} for n in range(3)], partition=1)
    job = begin("t", topics_server.url)
    assert ends_of(job) == [0, 3]
    assert begin("t", topics_server.url) != job
    for wrong in ("again", "again@", "again@x", "again@1,-2"):
        with pytest.raises(InvalidRequest, match="does not say where the job ends"):
            ends_of(wrong)


def test_steps_are_cut_at_the_same_places() -> None:
    assert list(steps_of([0, 5, 3], 2, 3)) == [Step(1, 2, 4), Step(1, 5, 5), Step(2, 2, 3)]
    assert next(steps_of([5], 1, 3)) == next(steps_of([4], 1, 3)) == Step(0, 1, 3)


def test_dead_letters_go_back_and_ranges_anywhere(
    spark: SparkSession, topics_server: RunningServer, topics_client: Client
) -> None:
    url = topics_server.url
    dead = topics_client.topic("dead")
    dead.create(cap_records=8)
    meta = {"$dead_letter_from": "jobs"}
    dead.write_many([{"data": {"n": n}, "tag": f"t{n % 2}", **({"meta": meta} if n != 5 else {})} for n in range(10)])
    wanted = Wanted("dead")
    told = redrive(spark, wanted, url=url, dry_run=True, step_rows=4)
    assert (told.scanned, told.count, told.lost, told.dry_run) == (10, 7, 2, True)
    assert [state.topic for state in topics_client.topics()] == ["dead"]
    job = begin("dead", url)
    steps: list[tuple[int, int]] = []
    done = redrive(spark, wanted, url=url, job_id=job, step_rows=4, on_progress=lambda *told: steps.append(told))
    assert (done.count, done.job_id, steps) == (7, job, [(4, 10), (8, 10), (10, 10)])
    dead.write({"n": 99}, meta=meta)
    assert redrive(spark, wanted, url=url, job_id=job, step_rows=4).job_id == job
    back = [record.data["n"] for record in topics_client.topic("jobs").diff().records]
    assert back == [2, 3, 4, 6, 7, 8, 9], "once, in order, and nothing that came after the job began"
    chosen = Wanted("dead", "big", "value.n > 6 AND tag = 't1'", "struct(value.n * 10 AS n)", "n bigint", from_seq=4)
    assert redrive(spark, chosen, url=url, rate=1_000_000).count == 3
    found = list(topics_client.topic("big").diff(include_tags=True).records)
    assert [(record.data, record.tag) for record in found] == [({"n": 70}, "t1"), ({"n": 90}, "t1")]
