from __future__ import annotations

import json
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.heaprig import HEAP, HeapPair
from topics.core import heaprecord
from topics.core.heapcommands import Enqueue
from topics.core.records import Records
from topics.heapmodel import NewMessage
from topics.limits import NESTING_MAX
from topics.model import BASE64, ENCODING

MESSAGES = st.builds(
    NewMessage,
    payload=st.binary(max_size=40),
    priority=st.integers(-(2**63), 2**63 - 1),
    producer_id=st.none() | st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
    epoch=st.integers(0, 2**64 - 1),
    sequence=st.none() | st.integers(0, 2**64 - 1),
    max_retries=st.none() | st.integers(0, 2**32 - 1),
    is_json=st.booleans(),
    meta=st.none() | st.dictionaries(st.text("abc", min_size=1), st.text(st.characters(codec="utf-8")), max_size=3),
)


@given(st.lists(MESSAGES, min_size=1, max_size=40), st.booleans())
def test_a_message_comes_out_as_it_went_in(messages: list[NewMessage], frozen: bool) -> None:
    pair = HeapPair()
    log = pair.rig.log(HEAP)
    encoded = heaprecord.records_of(messages).encode(1, 77)
    log.append(encoded, pair.config)
    if frozen:
        log.freeze_tail()
    for seq, message in enumerate(messages, 1):
        stored = heaprecord.read(log, seq)
        assert (stored.ts, stored.payload, stored.priority) == (77, message.payload, message.priority)
        assert stored.is_json == (message.is_json and heaprecord.is_json(message.payload))
        assert (stored.producer_id, stored.max_retries) == (message.producer_id, message.max_retries)
        named = message.producer_id is not None and message.sequence is not None
        assert (stored.epoch, stored.sequence) == ((message.epoch, message.sequence) if named else (None, None))
        assert (stored.own_meta or {}) == (message.meta or {})
        assert heaprecord.ts_at(log, seq) == 77
    seqs = list(range(1, len(messages) + 1))
    assert heaprecord.priorities(log, seqs).tolist() == [message.priority for message in messages]
    assert heaprecord.priorities(log, seqs[::2]).tolist() == [message.priority for message in messages[::2]]


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"1,2", b"1]", b"\xff", b'"\xff"', b"1],[2", b"[" * 513 + b"]" * 513, b"nul"]
)
def test_what_is_no_json_is_kept_as_bytes(payload: bytes) -> None:
    assert not heaprecord.is_json(payload)
    records = heaprecord.records_of([NewMessage(payload=payload, is_json=True)])
    assert records.payload_bytes == len(records.datas[0]) + len(b'{"$encoding":"base64"}')


@pytest.mark.parametrize(
    "payload", [b"0", b' {"a" : [1, 2]} ', b"null", '"é"'.encode(), b"1e9999", b"[" * 512 + b"]" * 512]
)
def test_json_is_kept_as_it_was_sent(payload: bytes) -> None:
    assert heaprecord.is_json(payload)
    assert heaprecord.records_of([NewMessage(payload=payload, is_json=True)]).datas == [payload]


def test_a_reader_of_the_topic_sees_json_or_bytes() -> None:
    pair = HeapPair()
    pair.step(
        Enqueue(HEAP, [NewMessage(payload=b'{"n":1}', is_json=True), NewMessage(payload=b"\0\1", priority=-3)], 0)
    )
    first, second = pair.rig.scan(HEAP)
    assert first.data == {"n": 1} and first.meta is None
    assert second.data == b"\0\1"
    assert second.meta == {"$priority": "-3", ENCODING: BASE64}


def test_a_record_that_only_looks_like_bytes_is_what_it_is() -> None:
    pair = HeapPair()
    records = Records.of([{"data": "no base64!", "meta": {ENCODING: BASE64}}])
    pair.rig.log(HEAP).append(records.encode(1, 5), pair.config)
    stored = heaprecord.read(pair.rig.log(HEAP), 1)
    assert (stored.payload, stored.is_json) == (b'"no base64!"', True)


@pytest.mark.parametrize("text", ["x", "", "1.0", " 1", "1_0", "--1", "+1", "9" * 30, "9223372036854775808", "١"])
def test_what_is_no_priority_counts_as_none(text: str) -> None:
    pair = HeapPair()
    records = Records.of([{"data": 1, "meta": {"$priority": text}}, {"data": 2, "meta": {"$priority": "-5"}}])
    pair.rig.log(HEAP).append(records.encode(1, 5), pair.config)
    assert heaprecord.priorities(pair.rig.log(HEAP), [1, 2]).tolist() == [0, -5]
    assert heaprecord.read(pair.rig.log(HEAP), 1).priority == 0


DEEP = b"[" * (NESTING_MAX + 1) + b"]" * (NESTING_MAX + 1)


@pytest.mark.parametrize(
    "payloads",
    [
        [],
        [b"1"],
        [b"1", b'{"a":[2]}', b'"x"'],
        [b"[1", b"2]", b"3,4"],
        [b"1,2"],
        [b"1", b""],
        [b"1", b" 2 "],
        [b"1", b"\xff"],
        [b"1", '"ü"'.encode()],
        [b"1", DEEP],
        [b"[" * NESTING_MAX + b"]" * NESTING_MAX] * 3,
        [b"1]", b"[2"],
    ],
)
def test_payloads_looked_at_together_are_what_they_are_alone(payloads: list[bytes]) -> None:
    """Together it is only said that all of them are JSON when each of them is; what is stored is the same."""
    alone = [heaprecord.is_json(payload) for payload in payloads]
    assert not heaprecord.are_all_json(payloads) or all(alone)
    if payloads:
        made = heaprecord.records_of([NewMessage(payload=payload, is_json=True) for payload in payloads])
        texts = [json.loads(bytes(data)) for data in made.datas]
        for payload, good, text in zip(payloads, alone, texts, strict=True):
            assert text == (json.loads(payload) if good else b64encode(payload).decode())


def test_plain_payloads_are_taken_for_json_at_a_glance() -> None:
    assert heaprecord.are_all_json([b"1", b'{"a":[2]}', b'"x"']) and heaprecord.are_all_json(
        [b"[%b]" % (b"1," * 2000 + b"1")] * 2
    )
    assert not heaprecord.are_all_json([b"[1", b"2]", b"3,4"])


def test_records_that_were_staged_without_any_meta_are_messages_that_leave_no_key() -> None:
    pair = HeapPair()
    pair.rig.stage("s", {"data": 1}, {"data": 2}, topic=HEAP)
    pair.rig.publish("s")
    pair.rig.show()
    assert [message.payload for message in pair.step_pop("a", 9)] == [b"1", b"2"]
    assert not pair.rig.log(HEAP).remembers or len(pair.rig.log(HEAP).dedupe) == 0
