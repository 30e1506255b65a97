from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.spark.rig import datas
from topics.errors import BatchTooLarge, InvalidRequest
from topics.spark import staging
from topics.spark.server import Server
from topics.spark.staging import Staging, Target
from topics.testing.served import RunningServer, running_server


def rows(*numbers: int) -> pa.Table:
    return pa.table({"data": [str(number) for number in numbers]})


def stage_and_publish(server: RunningServer, *parts: tuple[Target, pa.Table]) -> Staging:
    asked = Server(server.url, "", 60_000)
    for target, _ in parts:
        asked.create(target.topic)
    made = Staging(asked)
    for target, records in parts:
        made.add(target, records)
    made.flush()
    asked.publish(made.stages, "p", 1)
    asked.close()
    return made


def test_a_stage_for_each_target_in_order(topics_server: RunningServer) -> None:
    one, other = Target("t", 0), Target("u", 0)
    made = stage_and_publish(topics_server, (one, rows(1, 2)), (other, rows(3)), (one, rows(4)))
    assert len(made.stages) == 2
    assert (datas(topics_server, "t"), datas(topics_server, "u")) == ([1, 2, 4], [3])


def test_pieces_as_large_as_the_server_takes() -> None:
    with running_server(max_batch_records=100) as server:
        stage_and_publish(server, (Target("t", 0), rows(*range(12_345))))
        assert datas(server, "t") == list(range(12_345))


def test_pieces_of_many_bytes(topics_server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "CHUNK_BYTES", 1000)
    stage_and_publish(topics_server, (Target("t", 0), rows(*range(500))), (Target("t", 0), rows(500)))
    assert datas(topics_server, "t") == list(range(501))


def test_a_record_that_is_refused_is_named(topics_server: RunningServer) -> None:
    with pytest.raises(InvalidRequest, match="records"):
        stage_and_publish(topics_server, (Target("t", 0), pa.table({"data": ["1", "{"]})))


class _NeverContent(Server):
    """Refuses each piece as too large, and does not say what would not be."""

    asked_count = 0

    def stage(self, *given: Any) -> None:
        type(self).asked_count += 1
        raise BatchTooLarge("that is too much")


def test_a_server_that_takes_no_piece_at_all_is_not_asked_for_ever(topics_server: RunningServer) -> None:
    made = Staging(_NeverContent(topics_server.url, "", 60_000))
    made.add(Target("t", 0), rows(1, 2, 3))
    with pytest.raises(BatchTooLarge, match="that is too much"):
        made.flush()
    assert _NeverContent.asked_count == 1
