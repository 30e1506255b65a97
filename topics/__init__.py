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
from topics.model import (
    Aborted,
    AckedJobs,
    CompletedJobs,
    Configured,
    Deleted,
    Discard,
    Dropped,
    Durability,
    Gap,
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
from topics.routermodel import Guarantee, RouterConfig, RouterDropped, RouterState
from topics.sqlmodel import SqlColumn, SqlResult, SqlTombstone

if TYPE_CHECKING:
    from topics import sync
    from topics.client import (
        Client,
        Cursor,
        CursorStore,
        Delivered,
        Delivery,
        Group,
        Job,
        MemoryCursors,
        Producer,
        Queue,
        Router,
        Topic,
        TopicProducer,
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
    "Client",
    "CompletedJobs",
    "Configured",
    "Cursor",
    "CursorStore",
    "Deleted",
    "Delivered",
    "Delivery",
    "Discard",
    "Dropped",
    "DroppedGroup",
    "Durability",
    "ExtendedGroup",
    "FileCursors",
    "Gap",
    "Group",
    "GroupBatch",
    "GroupMember",
    "GroupRange",
    "GroupState",
    "Guarantee",
    "Job",
    "MemoryCursors",
    "NackedGroup",
    "NackedJobs",
    "Page",
    "PausedGroup",
    "PlacedGroup",
    "Producer",
    "Published",
    "Queue",
    "QueueState",
    "RangeKind",
    "Reason",
    "Record",
    "Redriven",
    "Router",
    "RouterConfig",
    "RouterDropped",
    "RouterState",
    "SqlColumn",
    "SqlResult",
    "SqlTombstone",
    "StageState",
    "Tombstone",
    "Topic",
    "TopicConfig",
    "TopicProducer",
    "TopicState",
    "TopicType",
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
    "Client",
    "Cursor",
    "CursorStore",
    "Delivered",
    "Delivery",
    "Group",
    "Job",
    "MemoryCursors",
    "Producer",
    "Queue",
    "Router",
    "Topic",
    "TopicProducer",
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
