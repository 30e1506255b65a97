"""Topics made again for records whose creation is lost."""

from __future__ import annotations

from topics.core.commands import Configure
from topics.core.machine import Machine
from topics.engine.findings import Findings
from topics.engine.losttopics import LostTopics
from topics.model import TopicConfig
from topics.storage.segmentfile import SectionKey


def lost(machine: Machine, *keys: SectionKey) -> tuple[LostTopics, Findings]:
    found = Findings()
    return LostTopics(machine, keys, found, 5), found


def key(topic: str, epoch: int, partition: int = 0) -> SectionKey:
    return SectionKey(0, topic, partition, epoch)


def test_a_log_of_which_nothing_is_known_gets_a_name() -> None:
    machine = Machine()
    topics, found = lost(machine)
    log = topics.of_section(7, None)
    assert log is not None and (log.topic, log.log_id) == ("recovered-7", 7)
    assert len(found.items) == 1


def test_a_topic_has_as_many_partitions_as_sections_tell_of_and_the_config_that_a_fact_does() -> None:
    machine = Machine()
    topics, _ = lost(machine, key("t", 3, 0), key("t", 3, 2), key("t", 2, 5))
    topics.configured["u"] = TopicConfig(ttl_ms=9)
    log = topics.of_section(11, key("t", 3, 1))
    assert log is not None and (log.partition, machine.topic("t").config.partitions) == (1, 3)
    assert list(machine.topic("t").log_ids()) == [10, 11, 12]
    assert topics.of_section(20, key("u", 4)) is machine.logs[20]
    assert machine.topic("u").config == TopicConfig(ttl_ms=9) and not topics.configured


def test_the_newer_of_two_topics_with_one_name_is_there() -> None:
    machine = Machine()
    machine.next_epoch = 3
    machine.step(Configure("t", {}), 1)
    (log_id,) = machine.topic("t").log_ids()
    topics, found = lost(machine)
    assert topics.of_section(90, key("t", 2)) is None and topics.of_section(91, key("t", 3)) is None
    assert not found.items and list(machine.topic("t").log_ids()) == [log_id]
    log = topics.of_section(92, key("t", 4))
    assert log is not None and machine.topic("t").epoch == 4 and log_id not in machine.logs


def test_a_stage_is_not_made_again() -> None:
    machine = Machine()
    topics, found = lost(machine)
    assert topics.of_section(9, key("t", 0)) is None and machine.topics.get("t") is None
    assert found.notes == ["log 9 holds a stage for topic t that nobody can publish any more"]
