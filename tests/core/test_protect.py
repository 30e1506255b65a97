from __future__ import annotations

import pytest

from tests.core.rig import T0_MS
from topics.core.facts import Archived, ArchiveDropped
from topics.core.log import Log
from topics.core.protect import Archive, all_held, allowed, needed_from, protects
from topics.core.records import Records
from topics.model import TopicConfig

ARCHIVES = TopicConfig(protect_unarchived=True, protect_max_bytes=1000)


def log_of(count: int) -> Log:
    log = Log(7, "t", 0, 1)
    log.append(Records.of([{"data": "x" * 8}] * count).encode(1, T0_MS), TopicConfig())
    return log


@pytest.mark.parametrize(
    ("config", "asked"),
    [
        (TopicConfig(), False),
        (TopicConfig(protect_max_bytes=5), False),
        (ARCHIVES, True),
        (TopicConfig(protect_groups=("g",)), True),
    ],
)
def test_what_asks_for_protection(config: TopicConfig, asked: bool) -> None:
    assert protects(config) is asked


def test_all_is_needed_until_the_first_archive_says_how_far_it_is() -> None:
    log = log_of(5)
    assert needed_from(log, ARCHIVES) == 1
    assert needed_from(log, TopicConfig()) == 6, "nobody needs anything where nothing is protected"
    log.apply(Archived("lake", 3, "s3://lake", T0_MS))
    assert log.holds.archives == {"lake": Archive(3, "s3://lake", T0_MS)}
    assert needed_from(log, ARCHIVES) == 4


def test_the_slowest_holder_counts() -> None:
    log = log_of(9)
    config = TopicConfig(protect_unarchived=True, protect_groups=("g", "h"))
    log.apply(Archived("fast", 8, "", T0_MS))
    log.apply(Archived("slow", 6, "", T0_MS))
    assert needed_from(log, config) == 0, "a group that has not come yet needs all"
    log.holds.groups |= {"g": 9, "h": 5}
    assert needed_from(log, config) == 5
    log.holds.groups["h"] = 9
    assert needed_from(log, config) == 7
    log.apply(ArchiveDropped("slow"))
    assert needed_from(log, config) == 9
    log.apply(ArchiveDropped("nobody"))
    assert needed_from(log, config) == 9


def test_retention_stops_at_what_is_needed() -> None:
    log = log_of(9)
    assert all_held(log, ARCHIVES)
    assert allowed(log, ARCHIVES, 7) == 1
    log.apply(Archived("lake", 4, "", T0_MS))
    assert not all_held(log, ARCHIVES)
    assert [allowed(log, ARCHIVES, wanted) for wanted in (3, 5, 7)] == [3, 5, 5]


def test_what_is_over_the_bound_goes_all_the_same() -> None:
    log = log_of(9)
    size = log.bytes // 9
    config = TopicConfig(protect_unarchived=True, protect_max_bytes=6 * size)
    assert not all_held(log, config)
    assert [allowed(log, config, wanted) for wanted in (3, 4, 7)] == [3, 4, 4]
