"""A class for each message of the contract, and the methods of each service.

The classes come from a pool of our own, so that they get along with others of the same names. They have no types that
a checker could follow; whoever uses them turns them into values of ours at once.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from topics.proto.descriptors import DESCRIPTORS

DISHEAP: Final = "disheap.v1.Disheap"
HEAPS: Final = "topics.v1.Heaps"


FILES: Final = tuple(FileDescriptorSet.FromString(base64.b64decode(DESCRIPTORS)).file)
"""What the `.proto` files say, those that they import before them."""


def _pool() -> Any:
    pool = DescriptorPool()
    for file in FILES:
        pool.Add(file)
    return pool


POOL: Final = _pool()


@dataclass(frozen=True, slots=True)
class Method:
    """One rpc: its address, its messages, and in which direction it streams."""

    name: str
    path: str
    request: Any
    response: Any
    client_streams: bool
    server_streams: bool


def methods_of(service: str) -> dict[str, Method]:
    """The methods of a service by name."""
    return {
        method.name: Method(
            method.name,
            f"/{service}/{method.name}",
            GetMessageClass(method.input_type),
            GetMessageClass(method.output_type),
            method.client_streaming,
            method.server_streaming,
        )
        for method in POOL.FindServiceByName(service).methods
    }


def _message(name: str) -> Any:
    return GetMessageClass(POOL.FindMessageTypeByName(name))


Duration: Final = _message("google.protobuf.Duration")
Timestamp: Final = _message("google.protobuf.Timestamp")
Empty: Final = _message("google.protobuf.Empty")

DLQPolicy: Final = _message("disheap.v1.DLQPolicy")
MakeHeapReq: Final = _message("disheap.v1.MakeHeapReq")
MakeHeapResp: Final = _message("disheap.v1.MakeHeapResp")
DeleteHeapReq: Final = _message("disheap.v1.DeleteHeapReq")
UpdateHeapConfigReq: Final = _message("disheap.v1.UpdateHeapConfigReq")
ListHeapsReq: Final = _message("disheap.v1.ListHeapsReq")
ListHeapsResp: Final = _message("disheap.v1.ListHeapsResp")
HeapInfo: Final = _message("disheap.v1.HeapInfo")
HeapStats: Final = _message("disheap.v1.HeapStats")
StatsReq: Final = _message("disheap.v1.StatsReq")
StatsResp: Final = _message("disheap.v1.StatsResp")
PurgeReq: Final = _message("disheap.v1.PurgeReq")
MoveToDlqReq: Final = _message("disheap.v1.MoveToDlqReq")
EnqueueReq: Final = _message("disheap.v1.EnqueueReq")
EnqueueResp: Final = _message("disheap.v1.EnqueueResp")
EnqueueBatchReq: Final = _message("disheap.v1.EnqueueBatchReq")
EnqueueBatchResp: Final = _message("disheap.v1.EnqueueBatchResp")
PopOpen: Final = _message("disheap.v1.PopOpen")
FlowControl: Final = _message("disheap.v1.FlowControl")
PopFilter: Final = _message("disheap.v1.PopFilter")
PopItem: Final = _message("disheap.v1.PopItem")
AckReq: Final = _message("disheap.v1.AckReq")
NackReq: Final = _message("disheap.v1.NackReq")
ExtendReq: Final = _message("disheap.v1.ExtendReq")
PeekReq: Final = _message("disheap.v1.PeekReq")
PeekResp: Final = _message("disheap.v1.PeekResp")
PeekItem: Final = _message("disheap.v1.PeekItem")

WorkRequest: Final = _message("topics.v1.WorkRequest")
WorkOpen: Final = _message("topics.v1.WorkOpen")
WorkResponse: Final = _message("topics.v1.WorkResponse")
WorkOpened: Final = _message("topics.v1.WorkOpened")
WorkItems: Final = _message("topics.v1.WorkItems")
Message: Final = _message("topics.v1.Message")
NewMessage: Final = _message("topics.v1.NewMessage")
EnqueueManyReq: Final = _message("topics.v1.EnqueueManyReq")
Settle: Final = _message("topics.v1.Settle")
SettleReq: Final = _message("topics.v1.SettleReq")
Settled: Final = _message("topics.v1.Settled")
ReprioritizeReq: Final = _message("topics.v1.ReprioritizeReq")
ReprioritizeResp: Final = _message("topics.v1.ReprioritizeResp")
PopReq: Final = _message("topics.v1.PopReq")
CancelReq: Final = _message("topics.v1.CancelReq")
CancelResp: Final = _message("topics.v1.CancelResp")
GetHeapReq: Final = _message("topics.v1.GetHeapReq")
Heap: Final = _message("topics.v1.Heap")
FindHeapsReq: Final = _message("topics.v1.ListHeapsReq")
FoundHeaps: Final = _message("topics.v1.ListHeapsResp")
PeekedMessage: Final = _message("topics.v1.PeekedMessage")
PeekedMessages: Final = _message("topics.v1.PeekResp")
DeadLetter: Final = _message("topics.v1.DeadLetter")
DeadFilter: Final = _message("topics.v1.DeadFilter")
PeekDeadLetterReq: Final = _message("topics.v1.PeekDeadLetterReq")
ListDeadLettersReq: Final = _message("topics.v1.ListDeadLettersReq")
ListDeadLettersResp: Final = _message("topics.v1.ListDeadLettersResp")
DeadLettersReq: Final = _message("topics.v1.DeadLettersReq")
CountResp: Final = _message("topics.v1.CountResp")
SnapshotReq: Final = _message("topics.v1.SnapshotReq")
SnapshotResp: Final = _message("topics.v1.SnapshotResp")
