"""Tables and pipelines declared: what is stored, what is refused, and the same again out of the facts."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.core.catalogrig import CatalogRig, pipeline, table
from topics.core.pipelinecommands import DropPipeline, Existing, PutPipeline, PutTable
from topics.errors import InvalidRequest, NameTaken, TableInUse, TableNotFound, Throttled, TopicNotFound, TopicsError
from topics.limits import PIPELINE_BYTES_MAX, PIPELINE_READS_MAX, PIPELINES_MAX, TABLES_MAX
from topics.pipelinemodel import PipelineKind, PipelineOptions


def rig() -> CatalogRig:
    made = CatalogRig()
    made.configure("orders", alias="o")
    return made


def test_a_table_is_registered_changed_and_forgotten() -> None:
    it = rig()
    first = it.put_table("chat.messages")
    assert (first.created, first.created_ts, first.routes) == (True, it.now_ms, ())
    it.now_ms += 5
    changed = it.put_table("chat.messages", table(location="/elsewhere"))
    assert not changed.created and changed.config.location == "/elsewhere"
    assert (changed.created_ts, changed.changed_ts) == (first.created_ts, it.now_ms)
    facts = len(it.facts)
    it.put_table("chat.messages", table(location="/elsewhere"))
    assert len(it.facts) == facts, "the same again stores nothing"
    assert it.again().catalog.tables == it.machine.catalog.tables
    assert it.drop_table("chat.messages").deleted and not it.drop_table("chat.messages").deleted
    assert it.again().catalog.tables == {}


def test_one_that_exists_is_kept_replaced_or_refused() -> None:
    it = rig()
    it.put_table("t")
    other = table(location="/other")
    assert it.put_table("t", other, Existing.KEEP).config == table()
    with pytest.raises(NameTaken, match="REGISTER OR REPLACE"):
        it.put_table("t", other, Existing.REFUSE)
    assert it.put_table("t", table(), Existing.REFUSE).config == table(), "the same is no other"
    it.put("p", pipeline("orders"))
    assert it.put("p", pipeline("orders", into="x"), Existing.KEEP).config.topic == "alerts"
    with pytest.raises(NameTaken, match="CREATE OR REPLACE"):
        it.put("p", pipeline("orders", into="x"), Existing.REFUSE)
    facts = len(it.facts)
    for existing in Existing:
        assert it.put("p", pipeline("orders"), existing).config == pipeline("orders"), "the same is no other"
    assert len(it.facts) == facts


def test_a_table_that_is_read_stays() -> None:
    it = rig()
    it.put_table("t")
    it.put_table("u")
    it.route("orders", "t")
    it.put("p", pipeline("orders", tables=("u",)))
    with pytest.raises(TableInUse, match="ALTER TOPIC orders DROP SOURCE t") as refused:
        it.drop_table("t")
    assert refused.value.detail["topics"] == ["orders"]
    with pytest.raises(TableInUse, match="DROP PIPELINE p") as refused:
        it.drop_table("u")
    assert refused.value.detail["pipelines"] == ["p"]
    it.drop("orders")
    assert it.drop_table("t").deleted


def test_a_pipeline_keeps_its_number_for_life() -> None:
    it = rig()
    first = it.put("p", pipeline("orders"))
    assert first.created and first.number > 0
    it.now_ms += 5
    changed = it.put("p", pipeline("orders", into="x"))
    assert (changed.created, changed.number, changed.created_ts) == (False, first.number, first.created_ts)
    assert changed.digest != first.digest
    it.drop_pipeline("p")
    assert it.put("p", pipeline("orders")).number > first.number
    machine = it.again()
    assert machine.catalog.pipelines["p"].config == pipeline("orders")
    assert machine.next_epoch == it.machine.next_epoch


def test_an_alias_is_the_topic_it_stands_for() -> None:
    it = rig()
    it.configure("alerts2", alias="a")
    made = it.put("p", pipeline("o", into="a"))
    assert (made.config.streams[0].topic, made.config.topic) == ("orders", "alerts2")


@pytest.mark.parametrize(
    ("name", "config", "kind", "sentence"),
    [
        ("p p", pipeline("orders"), InvalidRequest, "the name of a pipeline"),
        ("routes:t", pipeline("orders"), InvalidRequest, "ADD SOURCE"),
        ("p", pipeline("missing"), TopicNotFound, "CREATE TOPIC missing"),
        ("p", pipeline("orders", tables=("missing",)), TableNotFound, "REGISTER TABLE"),
        ("p", pipeline("orders", into="orders"), InvalidRequest, "would never end"),
        ("p", pipeline("orders", into="a b"), InvalidRequest, "a topic name"),
        ("p", pipeline("orders", options=PipelineOptions(trigger_ms=-1)), InvalidRequest, "trigger_ms"),
        ("p", pipeline("orders", options=PipelineOptions(max_records=1 << 40)), InvalidRequest, "max_records"),
        ("p", pipeline(*["orders"] * (PIPELINE_READS_MAX + 1)), InvalidRequest, "at most"),
        ("p", pipeline("orders", into="x" * PIPELINE_BYTES_MAX), InvalidRequest, "bytes"),
    ],
)
def test_a_refusal_changes_nothing(name: str, config: Any, kind: type[TopicsError], sentence: str) -> None:
    it = rig()
    facts = len(it.facts)
    with pytest.raises(kind, match=sentence):
        it.step(PutPipeline(name, config))
    assert len(it.facts) == facts and it.machine.catalog.pipelines == {}


def test_an_append_writes_rows_and_nothing_else() -> None:
    it = rig()
    config = pipeline("orders", options=PipelineOptions(output_mode="update"))
    it.put("p", replace(config, kind=PipelineKind.MERGE))
    with pytest.raises(InvalidRequest, match="output_mode"):
        it.put("q", replace(config, kind=PipelineKind.APPEND))


def test_routes_are_taken_away_by_their_own_statement() -> None:
    it = rig()
    it.put_table("t")
    it.route("orders", "t")
    with pytest.raises(InvalidRequest, match="DROP SOURCE t"):
        it.step(DropPipeline("routes:t"))
    assert it.drop_pipeline("missing").deleted is False


def test_there_is_a_bound() -> None:
    it = rig()
    for number in range(TABLES_MAX):
        it.put_table(f"t{number}")
    with pytest.raises(Throttled, match="tables"):
        it.step(PutTable("one.more", table()))
    for number in range(PIPELINES_MAX):
        it.put(f"p{number}", pipeline("orders"))
    with pytest.raises(Throttled, match="pipelines"):
        it.put("one.more", pipeline("orders"))


def test_the_routes_of_a_table_have_a_name_too() -> None:
    with pytest.raises(InvalidRequest, match="table"):
        rig().put_table("t" * 250)
