"""What is whole, and nobody here understands: entries of a snapshot, and files, as a newer version may write them."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from xxhash import xxh3_64_intdigest

from tests.core.accountrig import HASH
from tests.core.catalogrig import pipeline, table
from tests.engine.damage import disk_of
from tests.engine.heaprig import HeapRig
from tests.engine.routerrig import put
from tests.engine.test_fsck import run, without_lock
from topics.accountmodel import Role
from topics.core import heaporder
from topics.core.accountcommands import AddKey, AddUser, BeginSession
from topics.core.dedupe import IdempotencyKey
from topics.core.leasecolumns import LeaseColumns
from topics.core.pipelinecommands import PutPipeline, PutTable
from topics.engine import images
from topics.engine.images import LogImage
from topics.errors import NotUnderstood
from topics.heapmodel import NewMessage
from topics.storage import frame
from topics.storage.fs import File, Mapping, OpenMode
from topics.testing.driver import Driver
from topics.testing.fakedisk import FakeDisk
from topics.testing.faultfs import FaultFs

KINDS = ("a/", "b/", "d/", "h/", "i/", "k/", "l/", "m", "p/", "r/", "s/", "t/", "u/")


@pytest.fixture(autouse=True)
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"HEAP_YOUNG_MESSAGES": 50, "HEAP_YOUNG_BATCH_MAX": 20, "HEAP_RUN_MESSAGES": 200}.items():
        monkeypatch.setattr(heaporder, name, size)


def filled() -> HeapRig:
    """Something of everything that a snapshot has entries of."""
    rig = HeapRig()
    rig.heap()
    rig.batch(*[("h", NewMessage(payload=b"%d" % n, priority=n)) for n in range(100)])
    rig.pop()
    rig.configure("jobs", type="queue", durability="fsync")
    rig.write("jobs", 1, 2, key=IdempotencyKey("first"))
    put(rig, "jobs", "copies")
    rig.stage("later", "jobs", 3)
    rig.stage("now", "jobs", 4)
    rig.driver.wait(rig.publish("now"))
    rig.driver.do(AddUser("ada", "ada@example.org", Role.ADMIN, HASH))
    rig.driver.do(AddKey("k-ada", "ada", HASH, ("read",), (), "ada"))
    rig.driver.do(BeginSession("s-ada", "ada", 1 << 40))
    rig.driver.do(PutTable("orders", table()))
    rig.driver.do(PutPipeline("flow", pipeline()))
    rig.checkpoint()
    return rig


def rewritten(change: Callable[[dict[bytes, bytes]], bytes]) -> tuple[FakeDisk, bytes]:
    """A disk whose snapshot has one entry that is another; and its key."""
    rig = filled()
    state = rig.engine.store.snapshots.load()
    key = change(state)
    rig.engine.store.snapshots.reset(state)
    return rig.disk.kill(), key


def assert_refused(disk: FakeDisk, key: bytes) -> None:
    assert_left_alone(disk, f"the entry {key.decode()} of snapshot [0-9]+ is whole, but cannot be read: .*")


def assert_left_alone(disk: FakeDisk, why: str) -> None:
    """By whoever opens the directory and by whoever repairs it: a newer version can read what is there."""
    before, why = without_lock(disk), f"{why}; most likely a newer version has written it; open the directory with that"
    with pytest.raises(NotUnderstood, match=why):
        HeapRig(disk=disk)
    for repair in (False, True):
        with pytest.raises(NotUnderstood, match=why):
            run(disk, repair=repair)
    assert without_lock(disk) == before


@pytest.mark.parametrize("kind", KINDS)
def test_an_entry_that_is_not_understood_is_told_by_its_key(kind: str) -> None:
    def spoil(state: dict[bytes, bytes]) -> bytes:
        assert {key.decode()[:2] for key in state} == set(KINDS), "each kind is here, and no other"
        key = next(key for key in state if key.startswith(kind.encode()))
        state[key] = b"\xc1" * 17
        return key

    assert_refused(*rewritten(spoil))


def test_leases_that_lead_nowhere_are_told_by_the_key_of_their_log() -> None:
    """Bytes of the right form, with a holder that the image does not name."""

    def spoil(state: dict[bytes, bytes]) -> bytes:
        for key, value in state.items():
            image = images.decode_log(value) if key.startswith(b"l/") else None
            if image is not None and image.queue is not None and image.queue.leases.nodes:
                state[key] = images.encode(without_holders(image))
                return key
        raise AssertionError("somebody holds a lease")

    assert_refused(*rewritten(spoil))


def without_holders(image: LogImage) -> LogImage:
    assert image.queue is not None
    leases = LeaseColumns(*image.queue.leases[:-1], nodes=[])
    return msgspec.structs.replace(image, queue=msgspec.structs.replace(image.queue, leases=leases))


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("/data/wal/0-0000000001.wal", "WAL"),
        ("/data/segments/000000000001.data", "segment"),
        ("/data/snapshots/000000000001.delta", "snapshot"),
    ],
    ids=["wal", "segment", "snapshot"],
)
def test_a_file_in_the_format_of_another_version_is_left_alone(path: str, what: str) -> None:
    contents = filled().disk.kill().contents()
    version = contents[path].index(b"\xa7version\x01")
    header = frame.parse(memoryview(contents[path]), 0, 0)
    assert header is not None and header.offset < version < header.end, "the header says the version"
    content = bytearray(contents[path])
    content[version + len(b"\xa7version")] = 2
    sum_at = header.end - frame.CHECKSUM.size
    frame.CHECKSUM.pack_into(content, sum_at, xxh3_64_intdigest(content[:sum_at], 0))
    assert_left_alone(
        disk_of(contents | {path: bytes(content)}), f"{path} is in {what} format 2; this program reads format 1"
    )


# ---- many topics


class _Counted(FaultFs):
    """Counts what is asked of the file system."""

    asked = 0

    def exists(self, path: str) -> bool:
        self.asked += 1
        return super().exists(path)

    def open(self, path: str, mode: OpenMode) -> File:
        self.asked += 1
        return super().open(path, mode)

    def map(self, path: str) -> Mapping:
        self.asked += 1
        return super().map(path)


def _calls_of_a_start(topics: int) -> int:
    rig = HeapRig()
    for number in range(topics):
        rig.write(f"t{number}", number)
    rig.driver.close()
    fs = _Counted(rig.disk)
    engine = Driver(fs, rig.clock, rig.options).engine
    assert len(engine.machine.topics) == topics
    return fs.asked


def test_start_asks_no_more_of_the_disk_for_more_topics() -> None:
    assert _calls_of_a_start(300) == _calls_of_a_start(30)


def test_restored_topics_share_what_they_have_in_common() -> None:
    rig = HeapRig()
    for number in range(3):
        rig.configure(f"q{number}", type="queue")
        rig.write(f"q{number}", 1)
    rig.heap("h", dead_letter=None)
    rig.put(1)
    rig.stop()
    topics = [rig.engine.machine.topic(f"q{number}") for number in range(3)]
    assert len({id(topic.config) for topic in topics}) == 1
    logs = [rig.log(name) for name in ("q0", "q1", "h")]
    assert len({id(log.lost) for log in logs} | {id(log.published) for log in logs}) == 1
    queues = [log.queue for log in logs]
    assert [queue.is_touched for queue in queues if queue is not None] == [False] * 3, "nothing was handed out"
    assert rig.pop()[0].priority == 1 and rig.log("h").lost == {} == rig.log("q0").lost


def test_checkpoint_after_a_start_keeps_queues_that_nobody_touched() -> None:
    rig = HeapRig()
    rig.configure("q", type="queue", durability="fsync")
    rig.write("q", 1, 2)
    rig.heap()
    rig.put(3, 1)
    for _ in range(3):
        rig.stop()
        rig.write("q", 0)
    assert [message.priority for message in rig.pop(most=2)] == [1, 3]
    state = rig.engine.state("q").queue
    assert state is not None and state.ready == 5
