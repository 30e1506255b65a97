"""A durable event engine: one log per topic, and several ways to take from it.

    async with topics.connect("http://127.0.0.1:4000") as client:     # or in this process: topics.open("./data")
        orders = client.topic("orders")
        await orders.write({"sku": "A1"}, tag="order-1")
        async for event in orders.follow():
            ...

`topics.sync` has the same names for plain code, `topics.errors` everything that can go wrong.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from topics import errors
from topics.accountmodel import (
    AuditEntry,
    AuditVerdict,
    KeyState,
    KeyStatus,
    NewKey,
    NewLink,
    Role,
    SessionEnded,
    SessionState,
    UserDropped,
    UserState,
    UserStatus,
)
from topics.groupmodel import (
    AckedGroup,
    DroppedGroup,
    ExtendedGroup,
    GroupBatch,
    GroupMember,
    GroupRange,
    GroupState,
    NackedGroup,
    PausedGroup,
    PlacedGroup,
    RangeKind,
)
from topics.heapmodel import (
    AckedMessages,
    Cancelled,
    DeadMessage,
    DeadStep,
    Enqueued,
    EnqueuedBatch,
    ExtendedLeases,
    Failure,
    HeapConfig,
    HeapInfo,
    HeapStats,
    LostLease,
    MessageState,
    MovedToDlq,
    NackedMessages,
    PartitionStats,
    PeekedMessage,
    PeekedMessages,
    Purged,
    Reprioritized,
)
from topics.leasemodel import JobLease, LeasePage, ReadyJob
from topics.model import (
    Aborted,
    AckedJobs,
    ArchiveDropped,
    ArchiveState,
    CompletedJobs,
    Configured,
    Deleted,
    Discard,
    Dropped,
    Durability,
    ExtendedJobs,
    Gap,
    Mode,
    NackedJobs,
    Page,
    Published,
    QueueState,
    Reason,
    Record,
    Redriven,
    StageState,
    Tombstone,
    TopicConfig,
    TopicState,
    TopicType,
    Written,
)
from topics.pipelinemodel import (
    LogLine,
    PipelineCondition,
    PipelineConfig,
    PipelineDropped,
    PipelineKind,
    PipelineOptions,
    PipelineOrders,
    PipelineReport,
    PipelineState,
    PipelineStream,
    PipelineTable,
    RouteProgress,
    RunState,
)
from topics.producermodel import ForgottenProducer, ProducerState
from topics.routermodel import Guarantee, RouterConfig, RouterDropped, RouterState
from topics.sqlmodel import SqlColumn, SqlResult, SqlTombstone
from topics.tablemodel import TableColumn, TableConfig, TableDropped, TableFormat, TableRoute, TableState

if TYPE_CHECKING:
    from topics import sync
    from topics.client import (
        Audit,
        Client,
        Cursor,
        CursorStore,
        Delivered,
        Delivery,
        Group,
        Heap,
        Job,
        Keys,
        MemoryCursors,
        Message,
        Pipeline,
        Producer,
        Queue,
        Router,
        Sessions,
        Table,
        Topic,
        TopicProducer,
        Users,
        Worked,
        connect,
        trace_context,
    )
    from topics.cursorfile import FileCursors
    from topics.embedded import open

__version__ = "0.1.0"

__all__ = [
    "Aborted",
    "AckedGroup",
    "AckedJobs",
    "AckedMessages",
    "ArchiveDropped",
    "ArchiveState",
    "Audit",
    "AuditEntry",
    "AuditVerdict",
    "Cancelled",
    "Client",
    "CompletedJobs",
    "Configured",
    "Cursor",
    "CursorStore",
    "DeadMessage",
    "DeadStep",
    "Deleted",
    "Delivered",
    "Delivery",
    "Discard",
    "Dropped",
    "DroppedGroup",
    "Durability",
    "Enqueued",
    "EnqueuedBatch",
    "ExtendedGroup",
    "ExtendedJobs",
    "ExtendedLeases",
    "Failure",
    "FileCursors",
    "ForgottenProducer",
    "Gap",
    "Group",
    "GroupBatch",
    "GroupMember",
    "GroupRange",
    "GroupState",
    "Guarantee",
    "Heap",
    "HeapConfig",
    "HeapInfo",
    "HeapStats",
    "Job",
    "JobLease",
    "KeyState",
    "KeyStatus",
    "Keys",
    "LeasePage",
    "LogLine",
    "LostLease",
    "MemoryCursors",
    "Message",
    "MessageState",
    "Mode",
    "MovedToDlq",
    "NackedGroup",
    "NackedJobs",
    "NackedMessages",
    "NewKey",
    "NewLink",
    "Page",
    "PartitionStats",
    "PausedGroup",
    "PeekedMessage",
    "PeekedMessages",
    "Pipeline",
    "PipelineCondition",
    "PipelineConfig",
    "PipelineDropped",
    "PipelineKind",
    "PipelineOptions",
    "PipelineOrders",
    "PipelineReport",
    "PipelineState",
    "PipelineStream",
    "PipelineTable",
    "PlacedGroup",
    "Producer",
    "ProducerState",
    "Published",
    "Purged",
    "Queue",
    "QueueState",
    "RangeKind",
    "ReadyJob",
    "Reason",
    "Record",
    "Redriven",
    "Reprioritized",
    "Role",
    "RouteProgress",
    "Router",
    "RouterConfig",
    "RouterDropped",
    "RouterState",
    "RunState",
    "SessionEnded",
    "SessionState",
    "Sessions",
    "SqlColumn",
    "SqlResult",
    "SqlTombstone",
    "StageState",
    "Table",
    "TableColumn",
    "TableConfig",
    "TableDropped",
    "TableFormat",
    "TableRoute",
    "TableState",
    "Tombstone",
    "Topic",
    "TopicConfig",
    "TopicProducer",
    "TopicState",
    "TopicType",
    "UserDropped",
    "UserState",
    "UserStatus",
    "Users",
    "Worked",
    "Written",
    "__version__",
    "connect",
    "errors",
    "open",
    "sync",
    "trace_context",
]

# Every module of the package imports this one first. What stands on the engine is loaded when it is asked for, so that
# the lower rooms do not depend on the upper ones and the command line starts without them.
_CLIENT = (
    "Audit",
    "Client",
    "Cursor",
    "CursorStore",
    "Delivered",
    "Delivery",
    "Group",
    "Heap",
    "Job",
    "Keys",
    "MemoryCursors",
    "Message",
    "Pipeline",
    "Producer",
    "Queue",
    "Router",
    "Sessions",
    "Table",
    "Topic",
    "TopicProducer",
    "Users",
    "Worked",
    "connect",
    "trace_context",
)
_LATER = {"open": "topics.embedded", "sync": "topics.sync", "FileCursors": "topics.cursorfile"}
_LATER |= dict.fromkeys(_CLIENT, "topics.client")


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(_LATER[name])
    found: object = getattr(module, name, module)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
