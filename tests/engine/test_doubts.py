"""What was done, deleted or dropped stays so when a snapshot cannot be read: each segment's flags tell what counts."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import msgspec
import pytest

from tests.engine.damage import disk_of, overwrite
from tests.engine.heaprig import HeapRig
from tests.engine.rig import SMALL
from tests.engine.test_fsck import DIRECTORY
from topics.core.commands import Ack, Append, Claim, Claimer, Delete, PutRouter
from topics.core.match import Match
from topics.core.records import Records
from topics.core.run import DEAD
from topics.engine import writing
from topics.engine.findings import Doubt, FsckReport
from topics.engine.fsck import fsck
from topics.model import Page, TopicType
from topics.routermodel import RouterConfig
from topics.storage import segmentwriter
from topics.storage.frame import Kind
from topics.storage.gone import flag_gone, gone_section
from topics.storage.pins import Pins
from topics.storage.segmentfile import DataHeader, scan
from topics.storage.walfile import parse_name, read_header
from topics.storage.walscan import valid_frames
from topics.testing.clock import SimClock
from topics.testing.driver import Driver
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import Call, FaultFs, SimulatedCrash

START_MS = 1_700_000_000_000
SNAPSHOTS = f"{DIRECTORY}/snapshots/"
SEGMENTS = f"{DIRECTORY}/segments/"
STEP_BYTES = 61

TOPICS: dict[str, dict[str, object]] = {
    "plain": {},
    "capped": {"cap_records": 3},
    "brief": {"ttl_ms": 1000},
    "dropped": {},
    "jobs": {"type": "queue"},
    "sparse": {"type": "queue"},
    "idle": {},
}
Place = tuple[str, int, int]
"""Topic, partition, seq."""


def records(count: int, tag: str = "") -> Records:
    return Records.of([{"data": {"n": number}, **({"tag": tag} if tag else {})} for number in range(count)])


class Scene(HeapRig):
    """An engine on which everything ends in some way, in packs that others share."""

    def __init__(self) -> None:
        super().__init__(SMALL, FakeDisk(), SimClock(START_MS))

    def begin(self) -> None:
        for name, config in TOPICS.items():
            self.configure(name, durability="fsync", **config)
        self.heap("h", durability="fsync")
        self.driver.do(PutRouter("copies", RouterConfig(source="plain", dest="copy", create_dest=True)))
        for name in TOPICS:
            self.driver.do(Append(name, records(10, "old")))
        self.put(*range(10))
        self.stage("batch", "plain", *range(3))
        self.work()
        self.checkpoint()

    def end(self) -> None:
        """Most of it is over, and a snapshot says so."""
        self.driver.do(Ack("jobs", "w", self.claim("jobs", 10)))
        self.driver.do(Ack("sparse", "w", self.claim("sparse", 6)[1::2]))
        self.ack(*self.pop(most=8))
        self.delete("plain", before_seq=4)
        self.driver.do(Delete("plain", match=Match(b"old", prefix=False), before_seq=9))
        self.driver.wait(self.publish("batch"))
        self.drop("dropped")
        self.driver.do(Append("capped", records(2)))
        self.driver.do(Append("idle", records(1)))
        self.clock.advance(2000)
        self.driver.do(Append("brief", records(1)))
        self.work()
        self.checkpoint()

    def go_on(self) -> None:
        """Facts that the WAL alone has."""
        self.driver.do(Append("plain", records(2, "late")))
        self.driver.do(Append("sparse", records(2)))
        self.driver.do(Delete("plain", match=Match(b"late", prefix=False), before_seq=1000))
        self.claim("sparse", 2)

    def claim(self, queue: str, most: int) -> list[int]:
        got = self.driver.do(Claim(queue, (Claimer("w", most, 60_000),)))
        assert isinstance(got, tuple)
        return list(got[0].seqs)


def opened(disk: FakeDisk) -> Driver:
    return Driver(disk, SimClock(START_MS + 3000), SMALL)


def repaired(disk: FakeDisk) -> FsckReport:
    numbers = iter(range(1, 1 << 20))
    return fsck(disk, DIRECTORY, SimClock(START_MS + 3000), lambda: next(numbers), SMALL, repair=True)


def readable(driver: Driver) -> dict[Place, object]:
    """Every record that a reader gets."""
    found: dict[Place, object] = {}
    for topic in driver.engine.machine.topics:
        for partition in range(topic.config.partitions):
            cursor = 0
            while True:
                page = driver.engine.read(topic.name, cursor, partition=partition, limit=1000)
                assert isinstance(page, Page)
                for record in msgspec.json.decode(b"[" + page.body + b"]"):
                    found[(topic.name, partition, record["$seq"])] = record["data"]
                if page.next_from_seq <= cursor or page.next_from_seq >= page.head_seq:
                    break
                cursor = page.next_from_seq
    return found


@cache
def scene(more: bool, closed: bool) -> tuple[dict[str, bytes], frozenset[Place]]:
    """The files of a directory, and what can be read of them."""
    made = Scene()
    made.begin()
    made.end()
    if more:
        made.go_on()
    if closed:
        made.driver.close()
    contents = {path: content for path, content in made.disk.kill().contents().items() if not path.endswith("/lock")}
    return contents, frozenset(readable(opened(disk_of(contents))))


def assert_nothing_is_back(disk: FakeDisk, before: frozenset[Place], what: str) -> None:
    """What the repair did not tell of is as it was, and queues give all that they say is ready."""
    report = repaired(disk)
    doubtful = [each for each in report.may_be_back if each.doubt is Doubt.RECORDS]
    assert all(each.topic.startswith("recovered-") for each in doubtful), (what, doubtful)
    told = {(each.topic, 0, seq) for each in doubtful for seq in range(each.first_seq, each.last_seq + 1)}
    driver = opened(disk)
    after = readable(driver)
    assert after.keys() <= before | told, (what, after.keys() - before - told)
    lost = {(each.topic, each.partition, seq) for each in report.lost for seq in range(each.gap_from, 1000)}
    assert before <= after.keys() | lost, (what, before - after.keys() - lost)
    for name in ("jobs", "sparse"):
        drain(driver, name)


def drain(driver: Driver, name: str) -> None:
    """A queue hands out all that it says is ready."""
    topic = driver.engine.machine.topics.get(name)
    if topic is None or topic.config.type is not TopicType.QUEUE:
        return  # Its creation was lost.
    ready = driver.engine.state(name).queue
    assert ready is not None
    got = driver.do(Claim(name, (Claimer("late", 100, 60_000),)))
    assert isinstance(got, tuple)
    assert len(got[0].seqs) == ready.ready
    left = driver.engine.state(name).queue
    assert left is not None and left.ready == 0


def damages(contents: dict[str, bytes]) -> Iterator[tuple[str, FakeDisk]]:
    """Snapshot files that are missing, have a flipped bit, or sixteen bytes of zeros."""
    for path, content in contents.items():
        if not path.startswith(SNAPSHOTS):
            continue
        yield f"without {path}", disk_of({other: each for other, each in contents.items() if other != path})
        for offset in range(0, len(content), STEP_BYTES):
            for name, changed in (
                ("a flipped bit", bytes([content[offset] ^ (1 << offset % 8)])),
                ("zeros", bytes(min(16, len(content) - offset))),
            ):
                disk = disk_of(contents)
                overwrite(disk, path, content[:offset] + changed + content[offset + len(changed) :])
                yield f"{name} in {path} at {offset}", disk


@pytest.mark.parametrize("closed", [False, True], ids=["died", "closed"])
@pytest.mark.parametrize("more", [False, True], ids=["snapshot", "and WAL"])
def test_nothing_that_was_over_comes_back_after_a_repair(more: bool, closed: bool) -> None:
    contents, before = scene(more, closed)
    for what, disk in damages(contents):
        assert_nothing_is_back(disk, before, what)


def flags_that_live(contents: dict[str, bytes]) -> dict[Place, bool]:
    """Of every record in a segment, whether its flag says that it is live. Newer segments count."""
    found: dict[Place, bool] = {}
    for path in sorted(path for path in contents if path.startswith(SEGMENTS) and path.endswith(".data")):
        number = int(path.rpartition("/")[2].removesuffix(".data"))
        for stored in scan(path, memoryview(contents[path]), number):
            assert stored.key is not None
            for at, flag in enumerate(bytes(stored.flags)):
                place = (stored.key.topic if stored.key.epoch else "stage", 0, stored.block.first_seq + at)
                found[place] = flag != DEAD
    return found


@pytest.mark.parametrize("closed", [False, True], ids=["died", "closed"])
def test_flags_in_segments_tell_what_counts_without_a_snapshot(closed: bool) -> None:
    contents, before = scene(False, closed)
    live = {place for place, is_live in flags_that_live(contents).items() if is_live}
    assert live == before


def test_a_crash_before_the_flags_is_made_good_by_the_next_start() -> None:
    made = Scene()
    made.begin()
    made.driver.close()
    made.disk = made.disk.kill()
    fs = FaultFs(made.disk)
    made.driver = Driver(fs, made.clock, SMALL, seed=7)
    crash = fs.crash("open", path="*.data", nth=10_000)

    def on_call(call: Call) -> None:
        # The first file that is opened behind the new snapshot is one that gets flags.
        if call.name == "sync_dir" and call.path.endswith("snapshots"):
            crash.nth = crash.matched + 1

    fs.on_call = on_call
    with pytest.raises(SimulatedCrash):
        made.end()
    assert crash.fired
    left = made.disk.kill()
    live = flags_that_live(left.contents())
    assert live["dropped", 0, 1], "its flag is not set yet"
    recovered = opened(left)
    before = frozenset(readable(recovered))
    live = flags_that_live(left.kill().contents())
    assert not live["dropped", 0, 1]
    assert {place for place, is_live in live.items() if is_live} <= before


def test_segments_of_an_older_version_are_doubtful_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "flag_gone", lambda *given: None)
    monkeypatch.setattr(segmentwriter, "DataHeader", old_header)
    made = Scene()
    made.begin()
    made.end()
    before = readable(made.driver)
    made.driver.close()
    disk = made.disk.kill()
    newest = max(path for path in disk.contents() if path.startswith(SNAPSHOTS))
    disk.unlink(newest)
    report = repaired(disk)
    doubtful = [each for each in report.may_be_back if each.doubt is Doubt.RECORDS]
    told = {(each.topic, 0, seq) for each in doubtful for seq in range(each.first_seq, each.last_seq + 1)}
    driver = opened(disk)
    back = readable(driver).keys() - before.keys()
    assert ("jobs", 0, 1) in back
    assert back <= told
    drain(driver, "jobs")


def old_header(version: int, number: int, salt: int, created_ms: int, tells_gone: bool) -> DataHeader:
    """What a segment said of itself before its flags told all."""
    return DataHeader(version, number, salt, created_ms)


def test_a_queue_hands_out_what_it_says_is_ready_after_lost_facts() -> None:
    """The fact of a claim is lost, and a later one is there, whose cursor is behind its jobs."""
    made = Scene()
    made.configure("jobs", type="queue", durability="fsync")
    made.driver.do(Append("jobs", records(6)))
    first = made.claim("jobs", 3)
    made.driver.do(Ack("jobs", "w", made.claim("jobs", 1)))
    disk = made.disk.kill()
    path, offset = next(
        (path, found.offset)
        for path, content in disk.contents().items()
        if path.endswith(".wal")
        for found in valid_frames(memoryview(content), 0, read_header(memoryview(content), path, *parsed(path))[0].salt)
        if found.kind == Kind.FACT and b"claimed" in bytes(found.body)
    )
    content = bytearray(disk.contents()[path])
    content[offset + 60] ^= 1
    overwrite(disk, path, bytes(content))
    report = repaired(disk)
    assert ("jobs", Doubt.PROGRESS) in {(each.topic, each.doubt) for each in report.may_be_back}
    driver = opened(disk)
    drain(driver, "jobs")
    assert first == [1, 2, 3]


def test_flags_of_what_is_gone_are_noted_for_a_running_backup() -> None:
    made = Scene()
    made.begin()
    store = made.engine.store
    segment = next(iter(store.open_segments()))
    pins = Pins(1 << 30)
    pins.hold([segment.number])
    gone = gone_section(segment, 0, below=4)
    for _ in range(2):
        flag_gone(store.fs, store.tiers, pins, [gone])
    assert len(pins.unset_flags(segment.number)) == 3, "each once, as a backup takes it back"
    run = segment.run(0)
    assert (run.flagged_live(), run.flagged_live(4)) == (run.last_seq - 3, run.last_seq - 3)


def parsed(path: str) -> tuple[int, int]:
    found = parse_name(path.rpartition("/")[2])
    assert found is not None
    return found
