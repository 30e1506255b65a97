"""Topics of one name, out of what segments and what the WAL tell of them."""

from __future__ import annotations

from tests.engine.damage import disk_of
from tests.engine.rig import DAY_MS, Rig
from tests.engine.test_fsck import run
from topics.core.commands import PutRouter
from topics.core.facts import TopicCreated
from topics.core.heap import Heap
from topics.core.machine import Machine
from topics.engine.namesakes import Namesakes
from topics.model import TopicConfig, TopicType
from topics.routermodel import RouterConfig


def made(epoch: int, ttl_ms: int = 0) -> TopicCreated:
    """The topic `t` of this epoch, whose log has ten times its number."""
    return TopicCreated("t", epoch, 10 * epoch, TopicConfig(ttl_ms=ttl_ms), 1)


def known(*facts: TopicCreated, trusted: bool = False) -> tuple[Machine, Namesakes]:
    """A machine that knows topics by their segments."""
    machine = Machine()
    for fact in facts:
        machine.apply_meta(fact)
    return machine, Namesakes(machine, trusted)


def there(machine: Machine) -> tuple[int | None, list[int]]:
    """The epoch of the topic, and the logs of all."""
    found = machine.topics.named("t")
    return None if found is None else found.epoch, sorted(machine.logs)


def drop(machine: Machine, namesakes: Namesakes) -> None:
    topic = machine.topics.named("t")
    assert topic is not None
    namesakes.drop(topic)


def test_the_later_one_outlives_the_end_of_an_earlier_one() -> None:
    machine, namesakes = known(made(3))
    kept = machine.logs[30]
    namesakes.create(made(1))
    assert there(machine) == (1, [10, 30])
    drop(machine, namesakes)
    assert there(machine) == (3, [30])
    namesakes.create(made(2))
    drop(machine, namesakes)
    namesakes.create(made(3, ttl_ms=7))
    namesakes.finish()
    assert there(machine) == (3, [30]) and machine.logs[30] is kept
    assert machine.topic("t").config.ttl_ms == 7, "how it was made is told by the WAL"


def test_a_drop_before_the_creation_was_that_of_an_earlier_one() -> None:
    machine, namesakes = known(made(3))
    kept = machine.logs[30]
    drop(machine, namesakes)
    assert there(machine) == (None, [30])
    namesakes.create(made(3))
    namesakes.finish()
    assert there(machine) == (3, [30]) and machine.logs[30] is kept


def test_a_drop_without_a_creation_behind_it_is_what_it_says() -> None:
    machine, namesakes = known(made(3))
    drop(machine, namesakes)
    namesakes.finish()
    assert there(machine) == (None, []) and [log.log_id for log in machine.dropped_logs] == [30]


def test_a_creation_of_a_later_one_shows_that_it_was_dropped() -> None:
    machine, namesakes = known(made(3))
    drop(machine, namesakes)
    namesakes.create(made(4))
    namesakes.finish()
    assert there(machine) == (4, [40])
    machine, namesakes = known(made(3))
    namesakes.create(made(4))
    namesakes.finish()
    assert there(machine) == (4, [40])


def test_earlier_ones_whose_end_is_lost_give_way() -> None:
    machine, namesakes = known(made(3))
    namesakes.create(made(1))
    namesakes.create(made(2))
    assert there(machine) == (2, [20, 30])
    namesakes.finish()
    assert there(machine) == (3, [30])


def test_with_a_whole_snapshot_a_drop_is_one() -> None:
    machine, namesakes = known(made(3), trusted=True)
    drop(machine, namesakes)
    assert there(machine) == (None, [])


def test_what_the_wal_made_it_drops() -> None:
    machine, namesakes = known()
    namesakes.create(made(1))
    drop(machine, namesakes)
    assert there(machine) == (None, [])


def test_routers_go_with_what_was_dropped() -> None:
    machine, namesakes = known(made(3))
    machine.step(PutRouter("r", RouterConfig(source="t", dest="u")), 1)
    machine.step(PutRouter("other", RouterConfig(source="u", dest="v")), 1)
    drop(machine, namesakes)
    namesakes.create(made(3))
    assert [router.name for router in machine.routers] == ["other"]


def test_creation_gives_a_topic_all_its_partitions_and_its_type() -> None:
    machine, namesakes = known(made(3))
    kept = machine.logs[30]
    namesakes.create(TopicCreated("t", 3, 30, TopicConfig(type=TopicType.HEAP, partitions=2), 1))
    assert there(machine) == (3, [30, 31]) and machine.logs[30] is kept
    assert [type(machine.logs[log_id].queue) for log_id in (30, 31)] == [Heap, Heap]
    assert machine.logs[31].partition == 1 and machine.next_log_id == 32


def test_a_creation_of_the_same_type_keeps_what_is_known_of_jobs() -> None:
    queue = TopicCreated("t", 3, 30, TopicConfig(type=TopicType.QUEUE), 1)
    machine, namesakes = known(queue)
    kept = machine.logs[30].queue
    namesakes.create(queue)
    assert kept is not None and machine.logs[30].queue is kept


def test_a_repair_without_a_snapshot_keeps_the_records_of_the_last_one() -> None:
    rig = Rig()
    rig.configure("calm")
    for number in range(3):
        rig.configure("t", ttl_ms=DAY_MS * (1 + number))
        rig.write("t", f"first of {number}")
        rig.driver.checkpoint()
        rig.write("t", f"second of {number}")
        if number < 2:
            rig.drop("t")
    rig.driver.checkpoint()
    rig.write("calm", 1)
    contents = rig.disk.kill().contents()
    rig.disk = disk_of({path: content for path, content in contents.items() if "/snapshots/" not in path})
    kept = {each.topic: each.records for each in run(rig.disk, repair=True).kept}
    rig.start()
    assert [record.data for record in rig.read("t")] == ["first of 2", "second of 2"]
    assert rig.engine.machine.topic("t").config.ttl_ms == 3 * DAY_MS
    assert (kept["t"], kept["calm"]) == (2, 1) and not [name for name in kept if name.startswith("recovered")]
