"""A small data directory with something of everything, ways to damage it, and all that can be read from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from topics.core import live
from topics.core.commands import Append, Command, Configure, Delete, Drop, Publish, Stage
from topics.core.dedupe import IdempotencyKey
from topics.core.machine import Bounds
from topics.core.match import Match
from topics.core.records import Records
from topics.engine.recovery import Options
from topics.model import Reason
from topics.storage import snapshot
from topics.storage.wal import WalSettings
from topics.testing.clock import SimClock
from topics.testing.driver import Driver
from topics.testing.fakedisk import FakeDisk

DIRECTORY = "/data"
OPTIONS = Options(wal=WalSettings(shards=2, file_bytes=2048), bounds=Bounds(stage_ttl_ms=1 << 40))
START_MS = 1_700_000_000_000

Seen = dict[str, object]
"""Everything a caller can see, by what was asked."""


def records(start: int, count: int, tag: str = "", plain: bool = False) -> Records:
    items: list[dict[str, object]] = []
    for at in range(start, start + count):
        item: dict[str, object] = {"data": {"n": at}}
        if not plain:
            item |= {"tag": f"{tag or 'k'}:{at % 2}", "node": f"n{at % 2}", "meta": {"m": str(at)}}
        items.append(item)
    return Records.of(items)


def first_half() -> list[Command]:
    """What ends up in the first segments."""
    return [
        Configure("ledger", {"durability": "fsync"}),
        Configure("parts", {"partitions": 2, "durability": "fsync"}),
        Append("ledger", records(0, 4), dedupe_key=IdempotencyKey("first")),
        Append("parts", records(0, 2, plain=True)),
        Append("parts", records(2, 2, plain=True), partition=1),
        Append("gone", records(0, 2, plain=True)),
    ]


def second_half() -> list[Command]:
    """What ends up in a later segment, as marks in an earlier one, and in deltas."""
    return [
        Delete("ledger", match=Match(b"k:0", prefix=False), before_seq=4),
        Append("ledger", records(4, 3)),
        Stage("later", "parts", records(9, 1, plain=True)),
        Drop("gone"),
    ]


def last_part() -> list[Command]:
    """What is in the WAL only."""
    return [
        Append("ledger", records(7, 2), dedupe_key=IdempotencyKey("last")),
        Append("parts", records(4, 1, plain=True), partition=1),
        Configure("late", {"durability": "fsync"}),
        Append("late", records(0, 2, plain=True)),
        Delete("ledger", match=Match(b"k:1", prefix=False), before_seq=3),
        Append("ledger", records(9, 1)),
        Publish(("later",), "spark", 1),
        Append("late", records(2, 1, plain=True)),
        Append("parts", records(5, 1, plain=True)),
    ]


@contextmanager
def short_chains() -> Iterator[None]:
    """Snapshots are merged into a base after two deltas instead of a thousand."""
    before = snapshot.DELTAS_MAX
    snapshot.DELTAS_MAX = 1  # type: ignore[misc]
    try:
        yield
    finally:
        snapshot.DELTAS_MAX = before  # type: ignore[misc]


def build(*, closed: bool, checkpoints: bool = True) -> FakeDisk:
    """A directory whose process was stopped cleanly, or died with facts in its WAL."""
    disk = FakeDisk()
    clock = SimClock(START_MS)
    with short_chains():
        driver = Driver(disk, clock, OPTIONS)
        for commands in (first_half(), second_half()[:2], second_half()[2:]):
            for command in commands:
                driver.do(command)
            clock.advance(10)
            if checkpoints:
                driver.checkpoint()
        clock.advance(1000)
        for command in last_part():
            driver.do(command)
        clock.advance(1000)
        driver.work()
        if closed:
            driver.close()
    return disk.kill()


def see(driver: Driver) -> Seen:
    """Read everything there is; raises what a reader would get."""
    engine = driver.engine
    seen: Seen = {}
    for topic in sorted(engine.machine.topics, key=lambda topic: topic.name):
        seen[f"{topic.name} config"] = topic.config
        for partition in range(topic.config.partitions):
            name = f"{topic.name}/{partition}"
            seen[f"{name} pages"] = pages(driver, topic.name, partition)
            state = engine.state(topic.name, partition, touch=False)
            seen[f"{name} state"] = (
                state.head_seq,
                state.earliest_seq,
                state.evict_floor,
                state.count,
                state.bytes,
                state.epoch,
            )
            log = engine.machine.log(topic, partition)
            for tag in (b"k:0", b"k:1"):
                found = live.matching(log, Match(tag, prefix=False), log.next_seq)
                seen[f"{name} {tag!r}"] = [seq for _, seqs in found for seq in seqs.tolist()]
            seen[f"{name} dedupe"] = [
                log.dedupe.lookup(IdempotencyKey(key), START_MS + 2000, 60_000) for key in ("first", "last")
            ]
    batches = engine.machine.batches
    seen["stages"] = {name: stage.log.count for name, stage in batches.stages.items()}
    seen["batches"] = {key: batch.answer for key, batch in batches.by_producer.items()}
    return seen


def pages(driver: Driver, topic: str, partition: int) -> list[tuple[bytes, tuple[int, int, Reason] | None]]:
    """A full scan from the start: each page's text and what it says was missed."""
    found: list[tuple[bytes, tuple[int, int, Reason] | None]] = []
    cursor = 0
    while True:
        page = driver.engine.read(topic, cursor, partition=partition, limit=100)
        missed = page.tombstone
        found.append((page.body, None if missed is None else (missed.gap_from, missed.gap_to, missed.reason)))
        if page.next_from_seq <= cursor or page.next_from_seq >= page.head_seq:
            return found
        cursor = page.next_from_seq


def opened(disk: FakeDisk) -> Driver:
    return Driver(disk, SimClock(START_MS + 2000), OPTIONS)


def overwrite(disk: FakeDisk, path: str, content: bytes) -> None:
    """Make a file hold this and nothing else, durably; made anew when it does not exist."""
    file = disk.open(path, "write" if disk.exists(path) else "create")
    file.truncate(0)
    file.write_at(0, [content])
    file.sync()
    file.close()
    disk.sync_dir(path.rpartition("/")[0])


def disk_of(contents: dict[str, bytes], boots: int = 0) -> FakeDisk:
    """A disk that holds these files, all durable."""
    disk = FakeDisk()
    for path in ("wal", "segments", "snapshots"):
        disk.make_dir(f"{DIRECTORY}/{path}")
    for path, content in contents.items():
        disk.make_dir(path.rpartition("/")[0])
        overwrite(disk, path, content)
    for _ in range(boots):
        disk = disk.crash("kept")
    return disk


def flipped(contents: dict[str, bytes], path: str, offset: int, mask: int) -> FakeDisk:
    content = bytearray(contents[path])
    content[offset] ^= mask
    return disk_of(contents | {path: bytes(content)})
