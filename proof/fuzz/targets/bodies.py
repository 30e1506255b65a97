"""Bodies of requests (JSON of every kind, Arrow, protobuf), and the texts that clients hand back: cursors and ids."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa
from google.protobuf.message import DecodeError

from proof.fuzz.target import Target
from topics.core import heapplace, leases, names, ulid
from topics.core.group import parse_claim_id
from topics.core.leases import parse_lease_id
from topics.core.records import DEFAULT_LIMITS
from topics.errors import TopicsError
from topics.proto.messages import DISHEAP, HEAPS, methods_of
from topics.server.grpc import values
from topics.wire import (
    account,
    archive,
    arrowbody,
    batch,
    config,
    cursor,
    delete,
    diff,
    group,
    heap,
    json,
    pipeline,
    query,
    queue,
    records,
    router,
    sql,
    streamcursor,
    table,
    tokens,
    watch,
)
from topics.wire.arrowbody import decode_arrow_write
from topics.wire.nothing import check_nothing
from topics.wire.query import Query
from topics.wire.streamcursor import Positions, decode_stream_cursor, encode_checkpoint, encode_positions

Decode = Callable[[bytes], Any]

DECODERS: Final[tuple[Decode, ...]] = (
    records.decode_write,
    diff.decode_diff,
    delete.decode_delete,
    watch.decode_watch,
    tokens.decode_token,
    config.decode_config,
    router.decode_router,
    table.decode_table,
    pipeline.decode_pipeline,
    pipeline.decode_report,
    sql.decode_sql,
    queue.decode_claim,
    lambda body: queue.decode_ack(body, DEFAULT_LIMITS),
    queue.decode_plain_ack,
    queue.decode_nack,
    queue.decode_extend,
    queue.decode_redrive,
    lambda body: batch.decode_stage(body, DEFAULT_LIMITS),
    batch.decode_publish,
    batch.decode_abort,
    lambda body: group.decode_consume("a", "g", body),
    lambda body: group.decode_ack("a", "g", body),
    lambda body: group.decode_nack("a", "g", body),
    lambda body: group.decode_extend("a", "g", body),
    lambda body: group.decode_reset("a", "g", body),
    heap.decode_make,
    lambda body: heap.decode_change(body, "a", None),
    heap.decode_enqueue,
    heap.decode_batch,
    heap.decode_pop,
    heap.decode_settle,
    lambda body: heap.decode_settle(body, needs_extension=True),
    heap.decode_move,
    heap.decode_reprioritize,
    heap.decode_cancel,
    heap.decode_purge,
    heap.decode_dead,
    account.decode_key,
    account.decode_user,
    account.decode_user_change,
    account.decode_sign_in,
    account.decode_set_up,
    account.decode_password_change,
    check_nothing,
    lambda body: archive.decode_report("a", "lake", body),
    queue.decode_discard,
    account.decode_link,
)
"""An input says by its first byte which it is for."""


def read_body(data: bytes) -> None:
    if data:
        DECODERS[data[0] % len(DECODERS)](data[1:])


JSON_SEEDS: Final = (
    b'{"records":[{"data":{"a":1},"tag":"t","node":"n","meta":{"k":"v"}}],"node":"x","idempotency_key":"k"}',
    b'{"from_seq":3,"limit":10,"match":{"prefix":"a"},"node":"n","consistency":"strong"}',
    b'{"up_to_seq":9,"match":"a","erase":true}',
    b'{"topics":{"a":{"from_seq":1},"b#1":null},"heartbeat_ms":500,"cursor":"eyJhIjo1fQ"}',
    b'{"ttl_ms":60000,"scopes":["read"],"topics":["a*"],"wid":"w"}',
    b'{"type":"queue","durability":"fsync","ttl_ms":1000,"cap_bytes":10,"dead_letter":"d","lease_ms":5}',
    b'{"source":"a","destination":"b","match":"x","start":"head"}',
    b'{"format":"delta","location":"lake/a","key":["id"],"columns":[{"name":"id","type":"bigint"}]}',
    b'{"statement":"SELECT 1","report":{"state":"running"},"lines":[]}',
    b'{"sql":"SHOW TOPICS","parameters":[1,null,"x"]}',
    b'{"node":"w","limit":3,"lease_ms":1000,"wait_ms":10}',
    b'{"lease_ids":["l1"],"jobs":[{"seq":1,"lease_id":"l1"}],"delay_ms":5,"reason":"no"}',
    b'{"stages":["s1"],"producer_id":"p","epoch":1}',
    b'{"group":"g","claim_id":"c1","ranges":[[1,2]],"from":"earliest","consumer":"c"}',
    b'{"topic":"h","payload":"aGk=","priority":5,"delay_ms":0,"message_id":"0","lease_token":"l1.0.1"}',
    b'{"name":"k","scopes":["read","write"],"prefixes":["a:"],"expires_ts":1,"email":"a@b.c","password":"0123456789"}',
)
JSON_WORDS: Final = (
    *(
        b'"records":',
        b'"data":',
        b'"tag":',
        b'"meta":',
        b'"node":',
        b'"topic":',
        b'"match":',
        b'"limit":',
        b'"prefix":',
    ),
    *(b'"lease_id":', b'"seq":', b'"seqs":', b'"ranges":', b'"priority":', b'"payload":', b'"partition":', b'"epoch":'),
    *(b"null", b"true", b"false", b"[]", b"{}", b"[", b"]", b"{", b"}", b'"', b",", b":", b"\\u0000", b"\\ud800"),
    *(b"\xff", b"\xc3", b'"\\u0064ata":', b"1e400", b"-0", b"[" * 200, b'{"a":' * 200, b'""', b" ", b"\n"),
)

JSON: Final = Target(
    name="json-bodies",
    run=read_body,
    errors=(TopicsError,),
    modules=(
        *(records, json, diff, delete, watch, tokens, config, router, table, pipeline, sql),
        *(queue, batch, group, heap, account, archive),
    ),
    seeds=tuple(bytes([number]) + JSON_SEEDS[number % len(JSON_SEEDS)] for number in range(len(DECODERS)))
    + tuple(bytes([number]) + seed for number, seed in enumerate(JSON_SEEDS)),
    words=JSON_WORDS,
)

# ---- Arrow


def _stream(*columns: tuple[str, Any], **options: Any) -> bytes:
    made = pa.table(dict(columns))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, made.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(made)
    return bytes(sink.getvalue())


def read_arrow(data: bytes) -> None:
    before = pa.total_allocated_bytes()
    accepted = decode_arrow_write(data, Query(""))
    assert accepted.records.count >= 1
    del accepted
    assert pa.total_allocated_bytes() - before < 1 << 20, "what was decoded is let go"


ARROW: Final = Target(
    name="arrow-body",
    run=read_arrow,
    errors=(TopicsError,),
    modules=(arrowbody,),
    seeds=(
        _stream(("data", ["1", None, '{"a":2}']), ("tag", pa.array(["t", "u", "t"]).dictionary_encode())),
        _stream(
            ("data", pa.array(["1"], pa.large_string())), ("meta", ['{"k":1}']), ("delay_ms", [5]), ("node", ["n"])
        ),
        _stream(("data", ["1", "2"]), ("not_before", pa.array([1, 2], pa.uint64()))),
        _stream(("data", ["1" * 64] * 4), compression="zstd"),
        _stream(("data", pa.array([], pa.string()))),
    ),
    words=(b"\xff\xff\xff\xff", b"data", b"delay_ms", b"\xff\xff\xff\x7f", bytes(8)),
    bytes_max=3072,
    memory_factor=4096,
)

# ---- protobuf

METHODS: Final = tuple(method for service in (DISHEAP, HEAPS) for _, method in sorted(methods_of(service).items()))


def read_message(data: bytes) -> None:
    """A request of a method, by the first byte; what our code makes of it is made."""
    if not data:
        return
    request = METHODS[data[0] % len(METHODS)].request
    message = request.FromString(data[1:])
    again = request.FromString(message.SerializeToString(deterministic=True))
    assert again.SerializeToString(deterministic=True) == message.SerializeToString(deterministic=True)
    _understand(request.DESCRIPTOR, message)


def _understand(about: Any, message: Any) -> None:
    match about.name:
        case "MakeHeapReq":
            values.config_fields(message)
        case "UpdateHeapConfigReq":
            values.changed_fields(message, None)
        case "EnqueueReq":
            values.new_message(message)
        case "EnqueueManyReq":
            for each in message.messages:
                values.rich_message(each, "messages")
    for name in ("backoff_override", "extension", "wait_time"):
        if name in about.fields_by_name:
            values.milliseconds(name, getattr(message, name))
    if "visibility_timeout" in about.fields_by_name:
        values.visibility_ms(message)
    if "filter" in about.fields_by_name and about.fields_by_name["filter"].message_type.name == "DeadFilter":
        values.dead_filter(message.filter)


PROTO: Final = Target(
    name="protobuf",
    run=read_message,
    errors=(TopicsError, DecodeError),
    modules=(values,),
    seeds=tuple(bytes([number]) + b"\x0a\x01a\x10\x05\x1a\x02hi" for number in range(len(METHODS))),
    words=(b"\x0a\x01a", b"\x12\x80\x01", b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x0a\xff\xff\xff\xff\x0f"),
    bytes_max=512,
)

# ---- cursors and ids


def read_cursor(data: bytes) -> tuple[str, ...]:
    """Says who takes it for one of theirs."""
    text = data.decode("latin-1")
    taken = []
    for decode in (cursor.decode_cursor, _stream_cursor, names.check_topic, _watch_key, heapplace.parse_id, _query):
        with contextlib.suppress(TopicsError):
            decode(text)
            taken.append(decode.__name__)
    if token := parse_lease_id(text):
        assert leases.lease_id(token) == text
    parse_claim_id(text)
    if (place := ulid.parse_message_id(text)) is not None:
        assert ulid.message_id(place.ts, place.partition, place.seq) == text
    if (token_parts := heapplace.parse_lease_token(text)) is not None:
        assert heapplace.parse_lease_token(heapplace.lease_token(*token_parts)) == token_parts
    return tuple(taken)


def _stream_cursor(text: str) -> None:
    found = decode_stream_cursor(text)
    again = (
        encode_positions(found.seqs, found.epochs)
        if isinstance(found, Positions)
        else encode_checkpoint(found.session, found.at)
    )
    assert decode_stream_cursor(again.decode()) == found


def _watch_key(text: str) -> None:
    topic, partition, wildcard = watch.parse_key(text)
    assert wildcard or watch.parse_key(f"{topic}#{partition}") == (topic, partition, False)


def _query(text: str) -> None:
    found = Query(text)
    found.flag("a", False)
    assert found.whole("b", 0, 100) <= 100
    assert Query(f"c={quote(found.text('c'))}").text("c") == found.text("c")


CURSORS: Final = Target(
    name="cursors",
    run=read_cursor,
    errors=(),
    modules=(cursor, streamcursor, watch, heapplace, query, ulid),
    seeds=(
        cursor.encode_cursor("orders").encode(),
        encode_positions({"a": 5, "b#1": 2**64 - 1}, {"a": 7}),
        encode_checkpoint("s", 17),
        b"jobs#2",
        b"tenant42:*",
        b"l1f.0.2a",
        ulid.message_id(1_700_000_000_000, 3, 99).encode(),
        b"a=true&b=7&c=%20x",
    ),
    words=(b"eyJ", b"$epochs", b"=", b"#", b"*", b"%", b"&", b"l", b"c1", b"-", b"_", b"9" * 30, b"\xb2"),
    bytes_max=512,
)

TARGETS: Final = (JSON, ARROW, PROTO, CURSORS)
