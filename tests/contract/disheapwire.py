"""The gRPC contract of heaps as its clients know it, written down a second time: names, numbers and types alone.

`generated` has protoc make a client of it, so that what is tested is what such a client does, and not what our own
`.proto` says. A field is `name number type`, with `?` behind the number when it is optional and `*` when it is
repeated.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import grpc_tools
from grpc_tools import protoc

CONFIG = """
    topic 1 string, mode 2 Mode, partitions 3 uint32, replication_factor 4 uint32, top_k_bound 5 uint32,
    retention_time 6 Duration, visibility_timeout_default 7 Duration, max_retries_default 8 uint32,
    max_payload_bytes 9 uint64, compression_enabled 10 bool, dlq_policy 11 DLQPolicy
"""
MESSAGES = {
    "DLQPolicy": "enabled 1 bool, retention_time 2 Duration",
    "MakeHeapReq": CONFIG,
    "MakeHeapResp": "topic 1 string, heap_id 2 string",
    "DeleteHeapReq": "topic 1 string, force 2 bool, confirmation_token 3 string",
    "UpdateHeapConfigReq": """
        topic 1 string, retention_time 2? Duration, visibility_timeout_default 3? Duration,
        max_retries_default 4? uint32, max_payload_bytes 5? uint64, compression_enabled 6? bool,
        dlq_policy 7? DLQPolicy
    """,
    "ListHeapsReq": "page_size 1 uint32, page_token 2 string",
    "ListHeapsResp": "heaps 1* HeapInfo, next_page_token 2 string",
    "HeapInfo": f"{CONFIG}, created_at 12 Timestamp, updated_at 13 Timestamp, stats 14 HeapStats",
    "HeapStats": """
        total_messages 1 uint64, inflight_messages 2 uint64, dlq_messages 3 uint64, total_enqueues 4 uint64,
        total_pops 5 uint64, total_acks 6 uint64, total_nacks 7 uint64, total_retries 8 uint64,
        total_timeouts 9 uint64, partition_stats 10 map<uint32;PartitionStats>
    """,
    "PartitionStats": """
        partition_id 1 uint32, messages 2 uint64, inflight 3 uint64, leader_node 4 string, replica_nodes 5* string,
        is_healthy 6 bool
    """,
    "StatsReq": "topic 1? string, partition_id 2? uint32",
    "StatsResp": "global_stats 1 HeapStats, topic_stats 2 map<string;HeapStats>",
    "PurgeReq": "topic 1 string, partition_id 2? uint32, force 3 bool, confirmation_token 4 string",
    "MoveToDlqReq": "topic 1 string, message_id 2 string, reason 3? string",
    "EnqueueReq": """
        topic 1 string, payload 2 bytes, priority 3 int64, partition_key 4? string, producer_id 5? string,
        epoch 6? uint64, sequence 7? uint64, max_retries 8? uint32, not_before 9? Duration
    """,
    "EnqueueResp": "message_id 1 string, duplicate 2 bool, partition_id 3 uint32",
    "EnqueueBatchReq": "requests 1* EnqueueReq, transaction_id 2? string",
    "EnqueueBatchResp": "responses 1* EnqueueResp, transaction_id 2 string, all_duplicates 3 bool",
    "PopOpen": "oneof kind: flow_control 1 FlowControl, filter 2 PopFilter",
    "FlowControl": "credits 1 uint32",
    "PopFilter": "topic 1 string, partition_ids 2* uint32, visibility_timeout 3? Duration",
    "PopItem": """
        message_id 1 string, topic 2 string, partition_id 3 uint32, payload 4 bytes, priority 5 int64,
        enqueued_time 6 Timestamp, lease_token 7 string, lease_deadline 8 Timestamp, attempts 9 uint32,
        max_retries 10 uint32, producer_id 11? string, epoch 12? uint64, sequence 13? uint64
    """,
    "AckReq": "topic 1 string, message_id 2 string, lease_token 3 string",
    "NackReq": """
        topic 1 string, message_id 2 string, lease_token 3 string, backoff_override 4? Duration, reason 5? string
    """,
    "ExtendReq": "topic 1 string, lease_token 2 string, extension 3 Duration",
    "PeekReq": "topic 1 string, partition_id 2? uint32, limit 3? uint32, include_dlq 4 bool",
    "PeekResp": "items 1* PeekItem, has_more 2 bool",
    "PeekItem": """
        message_id 1 string, topic 2 string, partition_id 3 uint32, payload 4 bytes, priority 5 int64,
        enqueued_time 6 Timestamp, attempts 7 uint32, max_retries 8 uint32, is_leased 9 bool,
        lease_deadline 10? Timestamp, in_dlq 11 bool, producer_id 12? string, epoch 13? uint64, sequence 14? uint64
    """,
}
RPCS = {
    "MakeHeap": ("MakeHeapReq", "MakeHeapResp"),
    "DeleteHeap": ("DeleteHeapReq", "Empty"),
    "UpdateHeapConfig": ("UpdateHeapConfigReq", "Empty"),
    "ListHeaps": ("ListHeapsReq", "ListHeapsResp"),
    "Stats": ("StatsReq", "StatsResp"),
    "Purge": ("PurgeReq", "Empty"),
    "MoveToDLQ": ("MoveToDlqReq", "Empty"),
    "Enqueue": ("EnqueueReq", "EnqueueResp"),
    "EnqueueBatch": ("EnqueueBatchReq", "EnqueueBatchResp"),
    "PopStream": ("stream PopOpen", "stream PopItem"),
    "Ack": ("AckReq", "Empty"),
    "Nack": ("NackReq", "Empty"),
    "Extend": ("ExtendReq", "Empty"),
    "Peek": ("PeekReq", "PeekResp"),
}
WELL_KNOWN = ("Duration", "Empty", "Timestamp")
NAME = "existing_client"


def proto_text() -> str:
    lines = ['syntax = "proto3";', "package disheap.v1;"]
    lines += [f'import "google/protobuf/{name.lower()}.proto";' for name in WELL_KNOWN]
    lines.append("enum Mode { MIN = 0; MAX = 1; }")
    for name, fields in MESSAGES.items():
        lines.append(f"message {name} {{ {_fields(fields)} }}")
    rpcs = (f"rpc {name} ({_type(asked)}) returns ({_type(said)});" for name, (asked, said) in RPCS.items())
    lines.append(f"service Disheap {{ {' '.join(rpcs)} }}")
    return "\n".join(lines)


def _fields(text: str) -> str:
    chosen = text.removeprefix("oneof kind: ")
    made = []
    for field in chosen.split(","):
        name, number, kind = field.split()
        label = {"?": "optional ", "*": "repeated "}.get(number[-1], "")
        made.append(f"{label}{_type(kind.replace(';', ','))} {name} = {number.rstrip('?*')};")
    inside = " ".join(made)
    return inside if chosen == text else f"oneof kind {{ {inside} }}"


def _type(kind: str) -> str:
    return f"google.protobuf.{kind}" if kind in WELL_KNOWN else kind


def generated(directory: Path) -> tuple[Any, Any]:
    """The messages and the stubs that protoc makes of the contract, imported."""
    (directory / f"{NAME}.proto").write_text(proto_text())
    included = Path(str(grpc_tools.__file__)).parent / "_proto"
    code = protoc.main(
        [
            "protoc",
            f"--proto_path={directory}",
            f"--proto_path={included}",
            f"--python_out={directory}",
            f"--grpc_python_out={directory}",
            f"{NAME}.proto",
        ]
    )
    assert code == 0
    sys.path.insert(0, str(directory))
    try:
        return import_module(f"{NAME}_pb2"), import_module(f"{NAME}_pb2_grpc")
    finally:
        sys.path.remove(str(directory))
