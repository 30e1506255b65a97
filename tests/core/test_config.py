from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.rig import Rig
from topics.core import config as module
from topics.core.commands import Append, Configure
from topics.core.config import as_wire, build, merge, replace
from topics.core.records import Records
from topics.errors import InvalidRequest, TopicExistsIncompatible
from topics.limits import PROTECT_GROUPS_MAX
from topics.model import Configured, Discard, Durability, Mode, TopicConfig, TopicType

DEFAULTS = {
    "type": "log",
    "ttl_ms": 0,
    "cap_records": 0,
    "cap_bytes": 0,
    "discard": "old",
    "durable": False,
    "durability": "disk",
    "priority": None,
    "auto_priority": True,
    "auto_create": True,
    "idempotency_window_ms": 120000,
    "dedupe_node": True,
    "lease_ms": 30000,
    "claim_jitter_ms": 0,
    "max_deliveries": 0,
    "dead_letter": None,
    "leases_durable": False,
    "partitions": 1,
    "alias": None,
    "protect_unarchived": False,
    "protect_groups": [],
    "protect_max_bytes": 2**30,
    "visibility_ms": 0,
}

U64 = st.integers(0, 2**64 - 1)


def without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["log", "queue"]),
        "ttl_ms": U64,
        "cap_records": U64,
        "cap_bytes": U64,
        "discard": st.sampled_from(["old", "reject"]),
        "durable": st.booleans(),
        "durability": st.sampled_from(["ephemeral", "memory", "disk", "fsync"]),
        "priority": st.none() | st.integers(),
        "auto_priority": st.booleans(),
        "idempotency_window_ms": U64,
        "lease_ms": U64,
        "claim_jitter_ms": U64,
        "dead_letter": st.none() | st.just("jobs.dlq"),
        "partitions": st.integers(1, 1024),
    },
).map(lambda fields: fields if fields.get("type") == "queue" else without(fields, "lease_ms", "claim_jitter_ms"))
HEAP_FIELDS = st.fixed_dictionaries(
    {"type": st.just("heap")},
    optional={
        "cap_records": U64,
        "durability": st.sampled_from(["memory", "disk", "fsync"]),
        "lease_ms": U64,
        "dead_letter": st.none() | st.just("letters"),
        "partitions": st.integers(1, 1024),
        "mode": st.sampled_from(["min", "max"]),
        "top_k_bound": st.integers(1, 2**32 - 1),
        "replication_factor": st.integers(1, 16),
        "retention_ms": U64,
        "max_retries": st.integers(0, 2**32 - 1),
        "max_payload_bytes": st.integers(1, 128 << 20),
        "compression": st.booleans(),
        "dead_letter_ttl_ms": U64,
    },
)


def test_defaults_in_the_documented_order() -> None:
    wire = as_wire(build("jobs", {}))
    assert wire == DEFAULTS
    assert list(wire) == list(DEFAULTS)


def test_every_field_is_taken() -> None:
    fields = {
        "type": "queue",
        "ttl_ms": 1,
        "cap_records": 2,
        "cap_bytes": 3,
        "discard": "reject",
        "durable": False,
        "durability": "memory",
        "priority": -7,
        "auto_priority": False,
        "auto_create": False,
        "idempotency_window_ms": 4,
        "dedupe_node": False,
        "lease_ms": 500,
        "claim_jitter_ms": 6,
        "max_deliveries": 7,
        "dead_letter": "jobs.dlq",
        "leases_durable": True,
        "partitions": 8,
        "alias": "other",
        "protect_unarchived": True,
        "protect_groups": ["a", "b"],
        "protect_max_bytes": 9,
        "visibility_ms": 5000,
    }
    config = build("jobs", fields)
    assert as_wire(config) == fields
    assert config.type is TopicType.QUEUE
    assert config.discard is Discard.REJECT


@given(FIELDS | HEAP_FIELDS)
def test_what_is_shown_can_be_sent_back(fields: dict[str, Any]) -> None:
    config = build("jobs", fields)
    assert build("jobs", as_wire(config)) == config
    assert replace("jobs", config, as_wire(config)) == config
    assert merge("jobs", config, as_wire(config)) == config
    assert merge("jobs", config, {}) == config


@given(FIELDS, FIELDS)
def test_put_forgets_what_patch_keeps(before: dict[str, Any], fields: dict[str, Any]) -> None:
    existing = build("jobs", before)
    of_queues = () if existing.type is TopicType.QUEUE else ("lease_ms", "claim_jitter_ms")
    fields = without(fields, "type", "partitions", *of_queues)
    fixed = {"type": existing.type.value, "partitions": existing.partitions}
    assert replace("jobs", existing, fields) == build("jobs", fields | fixed)
    shown = as_wire(existing)
    if "durable" in fields and fields["durable"] != existing.durable:
        del shown["durability"]
    assert merge("jobs", existing, fields) == build("jobs", shown | fields)


@pytest.mark.parametrize(
    ("field", "sent", "kept"),
    [
        ("priority", 5000, 1000),
        ("priority", -5000, -1000),
        ("lease_ms", 0, 100),
        ("lease_ms", 10**12, 86_400_000),
        ("claim_jitter_ms", 6000, 5000),
    ],
)
def test_clamps(field: str, sent: int, kept: int) -> None:
    assert as_wire(build("jobs", {"type": "queue", field: sent}))[field] == kept


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("type", "stack"),
        ("type", None),
        ("ttl_ms", -1),
        ("ttl_ms", 2**64),
        ("ttl_ms", 1.0),
        ("ttl_ms", True),
        ("ttl_ms", "60"),
        ("cap_records", None),
        ("cap_bytes", []),
        ("discard", "new"),
        ("durable", 1),
        ("durability", "paper"),
        ("durability", ["disk"]),
        ("priority", 1.5),
        ("priority", False),
        ("auto_priority", "true"),
        ("auto_create", None),
        ("idempotency_window_ms", -5),
        ("lease_ms", -1),
        ("claim_jitter_ms", "5"),
        ("max_deliveries", 2**64),
        ("dead_letter", 7),
        ("dead_letter", "no/slash"),
        ("leases_durable", 0),
        ("alias", 7),
        ("alias", "jobs"),
        ("protect_groups", "billing"),
        ("protect_groups", ["billing", 7]),
        ("protect_groups", ["no/slash"]),
        ("protect_groups", [f"g{number}" for number in range(PROTECT_GROUPS_MAX + 1)]),
        ("partitions", 0),
        ("partitions", 1025),
        ("partitions", True),
    ],
)
def test_a_wrong_value_is_refused_by_name_and_with_what_would_be_right(field: str, value: object) -> None:
    with pytest.raises(InvalidRequest) as caught:
        build("jobs", {field: value})
    assert caught.value.detail["field"] == field
    assert caught.value.detail["expected"]
    assert field in caught.value.message


def test_unknown_fields_are_ignored() -> None:
    assert build("jobs", {"colour": "red"}) == TopicConfig()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "disk"),
        ({"durable": True}, "fsync"),
        ({"durable": False}, "disk"),
        ({"durable": True, "durability": "memory"}, "memory"),
        ({"durable": False, "durability": "fsync"}, "fsync"),
        ({"durability": "ephemeral"}, "ephemeral"),
    ],
)
def test_an_explicit_class_wins_over_durable(fields: dict[str, Any], expected: str) -> None:
    config = build("jobs", fields)
    assert config.durability == expected
    assert as_wire(config)["durable"] is (expected == "fsync")


def test_patching_durable_alone_changes_the_class_only_when_it_says_something_new() -> None:
    memory = build("jobs", {"durability": "memory"})
    assert merge("jobs", memory, {"durable": True}).durability is Durability.FSYNC
    assert merge("jobs", memory, {"durable": False}).durability is Durability.MEMORY
    fsync = build("jobs", {"durable": True})
    assert merge("jobs", fsync, {"durable": False}).durability is Durability.DISK


@pytest.mark.parametrize("change", [replace, merge])
@pytest.mark.parametrize(("field", "value"), [("type", "queue"), ("partitions", 4)])
def test_type_and_partitions_are_fixed(change: Any, field: str, value: object) -> None:
    existing = TopicConfig()
    with pytest.raises(TopicExistsIncompatible) as caught:
        change("jobs", existing, {field: value})
    assert caught.value.detail == {
        "topic": "jobs",
        "field": field,
        "current": as_wire(existing)[field],
        "requested": value,
    }
    assert "fixed" in caught.value.message


def test_dead_letters_go_to_another_topic() -> None:
    for change in (lambda f: build("jobs", f), lambda f: merge("jobs", TopicConfig(), f)):
        with pytest.raises(InvalidRequest, match="another topic"):
            change({"dead_letter": "jobs"})
    dlq = build("jobs", {"dead_letter": "jobs.dlq"})
    assert merge("jobs", dlq, {"dead_letter": None}).dead_letter is None


def test_a_heap_has_defaults_of_its_own() -> None:
    heap = build("jobs", {"type": "heap"})
    assert (heap.durability, heap.discard, heap.lease_ms, heap.dead_letter) == (
        Durability.FSYNC,
        Discard.REJECT,
        300_000,
        "jobs.dlq",
    )
    assert (heap.mode, heap.top_k_bound, heap.max_retries, heap.max_payload_bytes) == (Mode.MIN, 100, 3, 1 << 20)
    assert build("jobs", {"type": "heap", "dead_letter": None}).dead_letter is None


def test_a_put_of_a_heap_goes_back_to_the_defaults_of_heaps() -> None:
    heap = build("jobs", {"type": "heap", "mode": "max", "partitions": 4, "max_retries": 9})
    after = replace("jobs", heap, {})
    assert (after.mode, after.partitions, after.max_retries, after.dead_letter) == (Mode.MAX, 4, 3, "jobs.dlq")
    assert after.durability is Durability.FSYNC


def test_the_mode_of_a_heap_never_changes() -> None:
    heap = build("jobs", {"type": "heap"})
    with pytest.raises(TopicExistsIncompatible) as caught:
        merge("jobs", heap, {"mode": "max"})
    assert caught.value.detail["field"] == "mode"


@pytest.mark.parametrize("field", ["ttl_ms", "max_deliveries", "claim_jitter_ms"])
def test_what_would_lose_messages_is_refused_for_a_heap(field: str) -> None:
    with pytest.raises(InvalidRequest, match=f"{field} of heap"):
        build("jobs", {"type": "heap", field: 1000})


def test_a_full_heap_refuses() -> None:
    with pytest.raises(InvalidRequest, match="reject"):
        build("jobs", {"type": "heap", "discard": "old"})


def test_fields_of_heaps_are_refused_elsewhere() -> None:
    with pytest.raises(InvalidRequest, match="mode belongs to heaps") as caught:
        build("jobs", {"type": "queue", "mode": "max"})
    assert caught.value.detail["field"] == "mode"


@pytest.mark.parametrize("kind", ["log", "queue"])
@pytest.mark.parametrize("name", sorted(set(build("h", {"type": "heap"}).__struct_fields__) & set(module.HEAP_FIELDS)))
def test_a_field_of_heaps_is_refused_with_its_default_too(kind: str, name: str) -> None:
    shown = as_wire(build("jobs", {"type": "heap"}))[name]
    for change in (build, lambda topic, fields: merge(topic, build(topic, {"type": kind}), fields)):
        with pytest.raises(InvalidRequest, match=f"{name} belongs to heaps") as caught:
            change("jobs", {"type": kind, name: shown})
        assert caught.value.detail["field"] == name


def test_retries_of_a_queue_are_refused_with_a_way_on() -> None:
    with pytest.raises(InvalidRequest, match="max_deliveries bounds the deliveries of a job"):
        build("jobs", {"type": "queue", "max_retries": 3})


@pytest.mark.parametrize(("name", "value"), [("lease_ms", 5000), ("claim_jitter_ms", 10)])
def test_a_field_of_queues_is_refused_for_a_log(name: str, value: int) -> None:
    with pytest.raises(InvalidRequest, match=f"{name} belongs to queues and heaps") as caught:
        build("events", {name: value})
    assert caught.value.detail["field"] == name
    assert getattr(build("events", {"type": "queue", name: value}), name) == value


def test_a_config_that_comes_with_a_write_is_judged_by_the_topic_that_is_there() -> None:
    rig = Rig()
    rig.configure("jobs", type="queue")
    records = Records.of([{"data": 1}])
    assert rig.step(Append("jobs", records, config={"lease_ms": 5000})).reply.first_seq == 1  # type: ignore[attr-defined]
    for topic, config in (("jobs", {"max_retries": 3}), ("new", {"lease_ms": 5000})):
        with pytest.raises(InvalidRequest, match="belongs to"):
            rig.step(Append(topic, records, config=config))


def test_only_heaps_show_what_only_heaps_have() -> None:
    assert "mode" not in as_wire(build("log", {}))
    assert as_wire(build("jobs", {"type": "heap", "mode": "max"}))["mode"] == "max"


def test_a_heap_whose_dead_letters_would_have_too_long_a_name() -> None:
    with pytest.raises(InvalidRequest, match="dead_letter"):
        build("j" * 252, {"type": "heap"})


def test_a_topic_that_is_there_is_left_as_it_is_if_only_a_missing_one_is_wanted() -> None:
    rig = Rig()
    rig.configure(ttl_ms=5)
    outcome = rig.step(Configure("t", {"cap_records": 3}, if_missing=True))
    assert outcome.reply == Configured(topic="t", created=False, config=TopicConfig(ttl_ms=5))
    assert (outcome.facts, outcome.must_sync) == ([], False)
    with pytest.raises(InvalidRequest, match="cap_records"):
        rig.step(Configure("t", {"cap_records": -1}, if_missing=True))
    assert rig.step(Configure("u", {"cap_records": 3}, if_missing=True)).reply == Configured(
        topic="u", created=True, config=TopicConfig(cap_records=3)
    )
