"""The images of a snapshot: what stands in its entries, behind sums and keys that are right."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from proof.fuzz.target import Target
from topics.accountmodel import Role
from topics.core import dedupe, groupranges, heaporder, leasecolumns, leases
from topics.core.accountcommands import AddKey, AddUser, BeginSession
from topics.core.accounts import KEYS, SESSIONS, USERS, Accounts
from topics.core.catalog import Catalog
from topics.core.commands import Append, Claim, Claimer, Command, Configure, Publish, PutRouter, Stage
from topics.core.dedupe import Dedupe, IdempotencyKey, ProducerKey
from topics.core.groupcommands import Consume
from topics.core.heap import Heap
from topics.core.heapcommands import Enqueue, MakeHeap
from topics.core.log import Log
from topics.core.pipelinecommands import PutPipeline, PutTable
from topics.core.records import Records
from topics.engine import accountimages, catalogimages, groupimages, heapimages, images, routerimages
from topics.engine.restore import MEANINGLESS
from topics.heapmodel import NewMessage
from topics.model import Mode
from topics.pipelinemodel import PipelineConfig, PipelineKind
from topics.routermodel import RouterConfig
from topics.tablemodel import TableConfig, TableFormat
from topics.testing.clock import SimClock
from topics.testing.driver import Driver
from topics.testing.fakedisk import FakeDisk

NOW_MS: Final = 1_700_000_000_000
WINDOW_MS: Final = 120_000
KIND_BYTES: Final = 2
"""Each kind of key begins in a way of its own; a few numbers or a name follow."""


def read_entry(data: bytes) -> None:
    """What stands behind the beginning of a key. An image that is taken says the same when it is written again."""
    kind, value = data[:KIND_BYTES], data[KIND_BYTES:]
    if kind in _AGAIN:
        image = _AGAIN[kind](value)
        assert images.encode(_AGAIN[kind](images.encode(image))) == images.encode(image)
    if kind in _RESTORED:
        _RESTORED[kind](value)


def _restore_log(value: bytes) -> None:
    image = images.decode_log(value)
    log = Log(1, "t", 0, 1)
    log.queue = Heap(Mode.MIN) if image.heap is not None else None
    heapimages.restore(log, image, {})
    images.restore_log(log, image)


def _restore_chunk(value: bytes) -> None:
    Dedupe().load_chunk(value, NOW_MS, WINDOW_MS)


def _restore_router(value: bytes) -> None:
    routerimages.restore_router(routerimages.decode_router(value))


def _restore_catalog(kind: bytes, value: bytes) -> None:
    catalogimages.restore(Catalog(), kind, value)


def _restore_accounts(kind: bytes, value: bytes) -> None:
    accountimages.restore(Accounts(), kind, value)


_AGAIN: Final[dict[bytes, Callable[[bytes], object]]] = {
    b"m/": images.decode_meta,
    b"t/": images.decode_topic,
    b"l/": images.decode_log,
    b"s/": images.decode_stage,
    b"b/": images.decode_batch,
    b"r/": routerimages.decode_router,
}
_RESTORED: Final[dict[bytes, Callable[[bytes], None]]] = {
    b"l/": _restore_log,
    b"d/": _restore_chunk,
    b"h/": heapimages.check_run,
    b"r/": _restore_router,
    **{kind: partial(_restore_catalog, kind) for kind in (catalogimages.TABLES, catalogimages.PIPELINES)},
    **{kind: partial(_restore_accounts, kind) for kind in (USERS, KEYS, SESSIONS)},
}


def _entries() -> tuple[bytes, ...]:
    """Those of an engine that holds something of everything."""
    two = Records.of([{"data": 1}, {"data": 2}])
    commands: tuple[Command, ...] = (
        Configure("jobs", {"type": "queue"}),
        Append("jobs", two, 0, IdempotencyKey("k")),
        Append("jobs", two, 0, ProducerKey("p", 1, 1)),
        Claim("jobs", (Claimer("a", 2, 1000),)),
        Configure("plain", {}),
        Consume("plain", "g", limit=1),
        MakeHeap("heap", {}),
        Enqueue("heap", (NewMessage(payload=b"1", priority=1),), 0),
        PutRouter("r", RouterConfig(source="plain", dest="copies", filter=("tag", "Glob", "a*"))),
        Stage("later", "plain", two),
        Stage("now", "plain", two),
        Publish(("now",), "p", 1),
        AddUser("u", "u@example.org", Role.ADMIN, "$argon2id$v=19$m=8,t=1,p=1$c2FsdHNhbHQ$aGFzaA"),
        AddKey("k", "ci", "hash", ("read",), ("a",), "u"),
        BeginSession("s", "u", 1000),
        PutTable("t", TableConfig(format=TableFormat.DELTA, location="/data", key=("id",))),
        PutPipeline("flow", PipelineConfig(kind=PipelineKind.INSERT, definition="INSERT", topic="plain")),
    )
    driver = Driver(FakeDisk(), SimClock(NOW_MS))
    for command in commands:
        driver.do(command)
    driver.checkpoint()
    state = driver.engine.store.snapshots.load()
    driver.close()
    return tuple(key[:1] + b"/" + value for key, value in sorted(state.items()))


IMAGES: Final = Target(
    name="images",
    run=read_entry,
    errors=MEANINGLESS,
    modules=(dedupe, groupranges, heaporder, leasecolumns, leases, groupimages, heapimages, images, routerimages),
    seeds=(*_entries(), b"h/" + bytes(32)),
    bytes_max=2048,
)

TARGETS: Final = (IMAGES,)
