from __future__ import annotations

import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.rig import Rig, frozen
from topics.core import facts
from topics.core.dedupe import DedupeKey, IdempotencyKey, ProducerKey
from topics.core.facts import Appended, Floors, parse_plain, plain_buffers
from topics.core.match import Match
from topics.core.records import Records
from topics.core.source import Operation, PayloadMode, Source
from topics.model import Durability, Reason, TopicConfig

TS = 1_748_470_000_123
U64 = st.integers(0, 2**64 - 1)
KEYS: st.SearchStrategy[DedupeKey | None] = st.one_of(
    st.none(),
    st.builds(IdempotencyKey, st.text(min_size=1, max_size=9)),
    st.builds(ProducerKey, st.text(min_size=1, max_size=9), U64, U64),
)
FLOORS = st.none() | st.builds(
    Floors,
    U64,
    U64,
    st.dictionaries(st.sampled_from([Reason.CAP, Reason.TTL]), st.integers(1, 2**64 - 1), max_size=2),
)


def body_of(fact: Appended) -> memoryview:
    return memoryview(b"".join(fact.buffers()))


@given(ceiling=U64, floors=FLOORS, key=KEYS, stage_log_id=st.integers(0, 2**63), items=st.integers(1, 4))
def test_an_append_is_read_back_from_its_bytes(
    ceiling: int, floors: Floors | None, key: DedupeKey | None, stage_log_id: int, items: int
) -> None:
    records = Records.of([{"data": n, "tag": "a", "node": "n", "meta": {"k": "v"}} for n in range(items)])
    fact = Appended(records.encode(9, TS), ceiling, floors, key, stage_log_id)
    again = Appended.parse(body_of(fact))
    assert (again.ceiling, again.floors, again.dedupe_key, again.stage_log_id) == (ceiling, floors, key, stage_log_id)
    assert b"".join(again.records.block_buffers()) == b"".join(fact.records.block_buffers())
    assert again.records.payload_bytes == fact.records.payload_bytes
    assert body_of(again) == body_of(fact)


def test_the_bytes_of_a_plain_append() -> None:
    records = Records.of([{"data": 1}]).encode(7, TS)
    block = b"".join(records.block_buffers())
    assert bytes(body_of(Appended(records, 11))) == struct.pack("<QII", 11, 0, 0) + block
    floors = Floors(5, 4, {Reason.TTL: 3})
    assert bytes(body_of(Appended(records, 11, floors))) == struct.pack("<QII4Q", 11, 1, 0, 5, 4, 0, 3) + block


ONE = st.fixed_dictionaries(
    {"data": st.none() | st.text(max_size=9)},
    optional={"tag": st.just("a"), "node": st.just("n"), "meta": st.just({"k": "v"})},
)


@given(
    ceiling=U64,
    floors=st.none() | FLOORS,
    key=st.none() | KEYS,
    stage_log_id=st.sampled_from([0, 0, 3]),
    items=st.lists(ONE, min_size=1, max_size=2),
)
def test_a_plain_append_has_the_same_bytes_and_is_told_from_all_others(
    ceiling: int, floors: Floors | None, key: DedupeKey | None, stage_log_id: int, items: list[dict[str, Any]]
) -> None:
    records = Records.of(items)
    encoded = records.encode(9, TS)
    body = body_of(Appended(encoded, ceiling, floors, key, stage_log_id))
    if records.is_plain and floors is None and key is None and not stage_log_id:
        assert b"".join(plain_buffers(ceiling, 9, TS, encoded.text, records.payload_bytes)) == body
        assert parse_plain(body) == (ceiling, 9, TS, memoryview(encoded.text), records.payload_bytes)
    else:
        assert parse_plain(body) is None


def test_floors_are_not_taken_for_the_head_of_a_plain_append() -> None:
    floors = Floors(5, 4, {Reason.CAP: 1})
    assert parse_plain(body_of(Appended(Records.of([{"data": 1}]).encode(7, TS), 11, floors))) is None


@pytest.mark.parametrize(
    "key", [IdempotencyKey("k" * length) for length in range(1, 18)] + [ProducerKey("p", 0, 0), IdempotencyKey("\0\0")]
)
def test_what_follows_an_append_s_key_begins_at_a_multiple_of_eight(key: DedupeKey) -> None:
    records = Records.of([{"data": 1}]).encode(7, TS)
    body = body_of(Appended(records, dedupe_key=key))
    (extra_bytes,) = struct.unpack_from("<I", body, 12)
    assert extra_bytes and extra_bytes % 8 == 0
    assert bytes(body[16 + extra_bytes :]) == b"".join(records.block_buffers())
    assert Appended.parse(body).dedupe_key == key


LOG_FACTS: list[facts.LogFact] = [
    facts.Deleted(7),
    facts.Deleted(7, b"a:", prefix=True),
    facts.Deleted(2**64 - 1, b"", prefix=False),
    facts.FloorsMoved(4, 3, {Reason.CAP: 1, Reason.TTL: 2}),
    facts.SeqsSkipped(3, 9, Reason.RESTART),
    facts.HeadMoved(12),
    facts.Archived("lake", 7, "s3://lake", TS),
    facts.ArchiveDropped("lake"),
]
META_FACTS: list[facts.MetaFact] = [
    facts.TopicCreated("t", 3, 9, TopicConfig(durability=Durability.FSYNC, ttl_ms=5), TS),
    facts.TopicConfigured("t", TopicConfig(priority=-3, dead_letter="dead")),
    facts.TopicDropped("t"),
    facts.SourcesChanged(
        "t", (Source("a.b", Operation.INSERT), Source("c", Operation.DELETE, PayloadMode.DIFF, "x", "y"))
    ),
    facts.SourcesChanged("t", ()),
    facts.StageOpened("s", 5, "t", 2, TS),
    facts.StageDropped("s"),
    facts.BatchDecided("p", 4, ["s1", "s2"], TS),
    facts.BatchFinished("p", 4, [("t", 0, 1, 2, 2), ("u", 1, 0, -1, 0)], TS),
]


@pytest.mark.parametrize("fact", LOG_FACTS, ids=repr)
def test_facts_of_a_log_come_back(fact: facts.LogFact) -> None:
    assert facts.parse_log_fact(facts.encode(fact)) == fact


@pytest.mark.parametrize("fact", META_FACTS, ids=repr)
def test_facts_of_the_meta_log_come_back(fact: facts.MetaFact) -> None:
    assert facts.parse_meta_fact(facts.encode(fact)) == fact


def test_every_fact_has_a_name_of_its_own() -> None:
    kinds: list[Any] = [type(fact) for fact in LOG_FACTS + META_FACTS]
    names = {kind.__struct_config__.tag for kind in kinds}
    assert names == {
        "deleted",
        "floors",
        "skipped",
        "head",
        "archived",
        "archive_dropped",
        "topic_created",
        "topic_configured",
        "topic_dropped",
        "sources_changed",
        "stage_opened",
        "stage_dropped",
        "batch_decided",
        "batch_finished",
    }


def test_a_fact_of_one_log_is_not_taken_for_one_of_the_other() -> None:
    with pytest.raises(msgspec.ValidationError):
        facts.parse_meta_fact(facts.encode(LOG_FACTS[0]))
    with pytest.raises(msgspec.ValidationError):
        facts.parse_log_fact(facts.encode(META_FACTS[0]))


def test_what_a_delete_matches() -> None:
    assert facts.Deleted(7).match is None
    assert facts.Deleted(7, b"", prefix=True).match == Match(b"", prefix=True)
    assert facts.Deleted(7, b"a").match == Match(b"a", prefix=False)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([{}, {}, {"tag": "a"}, {"node": "n"}, {"meta": {"k": "v"}}]),
            st.sampled_from([None, None, IdempotencyKey("k")]),
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(["memory", "disk", "fsync"]),
    st.sampled_from([0, 2]),
)
def test_what_is_stored_of_a_write_does_not_depend_on_the_path_it_took(
    writes: list[tuple[dict[str, Any], IdempotencyKey | None]], durability: str, cap_records: int
) -> None:
    rig = Rig()
    rig.configure(durability=durability, cap_records=cap_records)
    by_batch = Rig()
    by_batch.configure(durability=durability, cap_records=cap_records)
    log = by_batch.log()
    for more, key in writes:
        rig.write({"data": 1, **more}, key=key)
    for fact in rig.facts[1:]:
        (body,) = fact.body
        appended = Appended.parse(memoryview(body))
        assert b"".join(appended.buffers()) == body, "the same bytes"
        log.apply_appended(appended)
    log.recount()
    replayed = rig.replayed().log()
    assert frozen(replayed) == frozen(log), "and the same state"
    assert (replayed.count, replayed.low, replayed.next_seq) == (rig.log().count, rig.log().low, rig.log().next_seq)
