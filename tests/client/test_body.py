from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest

from topics.client.body import delete_body, plain_body, read_body, stage_body, write_body
from topics.client.transport import DeleteRequest, ReadRequest, StageRequest, WriteRequest
from topics.errors import InvalidRequest


def written(**said: Any) -> dict[str, Any]:
    found = json.loads(write_body(WriteRequest(**{"records": [{"data": 1}], **said})))
    assert isinstance(found, dict)
    return found


def test_a_write_says_what_was_said_and_no_more() -> None:
    assert written() == {"records": [{"data": 1}]}
    assert written(
        records=[{"data": None, "tag": None, "meta": MappingProxyType({"k": "v"})}],
        node="n",
        partition=0,
        producer=("p", 1, 2),
        create=False,
        config={"ttl_ms": 5},
    ) == {
        "records": [{"data": None, "meta": {"k": "v"}}],
        "node": "n",
        "partition": 0,
        "producer_id": "p",
        "epoch": 1,
        "sequence": 2,
        "create": False,
        "config": {"ttl_ms": 5},
    }
    assert written(idempotency_key="k", key="a") == {"records": [{"data": 1}], "idempotency_key": "k", "key": "a"}


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"idempotency_key": "k", "producer": ("p", 1, 1)}, "give one of them"),
        ({"partition": 1, "key": "k"}, "give one of them"),
        ({"producer": ("p", 1)}, r"producer must be \(id, epoch, sequence\)"),
        ({"records": [{"data": 1}, {"data": object()}]}, r"records\[1\]\.data cannot be written as JSON"),
        ({"records": [{"data": 1}, {"data": [float("nan")]}]}, r"records\[1\]\.data .*NaN"),
        ({"records": [{"data": 1, "meta": {"k": object()}}]}, "cannot be written as JSON"),
        ({"config": {"ttl_ms": object()}}, "cannot be written as JSON"),
    ],
)
def test_what_cannot_be_sent_is_refused_here(said: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        written(**said)


def test_a_null_is_no_nan() -> None:
    assert written(records=[{"data": [None, "null"]}])["records"] == [{"data": [None, "null"]}]


def test_a_read_names_what_is_not_the_default() -> None:
    assert json.loads(read_body(ReadRequest())) == {"from_seq": 0, "include_tags": True}
    everything = ReadRequest(
        from_seq=5, partition=1, limit=2, max_batch_bytes=3, nodes=("a",), match="t", include_meta=False, wait_ms=4
    )
    assert json.loads(read_body(everything)) == {
        "from_seq": 5,
        "include_tags": True,
        "partition": 1,
        "limit": 2,
        "max_batch_bytes": 3,
        "wait_ms": 4,
        "match": "t",
        "node": ["a"],
        "include_meta": False,
    }


def test_a_delete_and_a_stage() -> None:
    assert json.loads(delete_body(DeleteRequest())) == {}
    request = DeleteRequest(partition=1, before_seq=0, match=["tag", "Glob", "a*"], erase=True)
    assert json.loads(delete_body(request)) == {
        "partition": 1,
        "before_seq": 0,
        "match": ["tag", "Glob", "a*"],
        "erase": True,
    }
    stage = StageRequest(stage="s", topic="t", records=[{"data": 1}], key="k")
    assert json.loads(stage_body(stage)) == {"records": [{"data": 1}], "key": "k", "stage": "s"}


def test_names_are_named_in_a_refusal() -> None:
    with pytest.raises(InvalidRequest, match="ttl_ms cannot be written as JSON"):
        plain_body({"ttl_ms": object()})


def test_what_is_no_record_is_left_for_the_server_to_refuse() -> None:
    assert written(records=["text"])["records"] == ["text"]
    with pytest.raises(InvalidRequest, match=r"records\[1\]\.data") as refused:
        write_body(WriteRequest(records=["text", {"data": float("nan")}]))  # type: ignore[list-item]
    assert refused.value.detail["field"] == "records[1].data"
