"""Whether there is room for more."""

from __future__ import annotations

import pytest

from topics.core import room
from topics.core.log import Log
from topics.core.records import Records
from topics.errors import RecordTooLarge, Throttled, TopicFull
from topics.model import Discard, TopicConfig

THREE = Records.of([{"data": 1}] * 3)


def holding(count: int) -> Log:
    log = Log(1, "t", 0, 1)
    log.append(Records.of([{"data": 1}] * count).encode(1, 5), TopicConfig())
    return log


def test_all_topics_together_have_a_bound_or_none() -> None:
    room.check_total(0, 10**12, THREE)
    room.check_total(10, 7, THREE)
    with pytest.raises(Throttled, match="TOPICS_MAX_TOTAL_BYTES") as refused:
        room.check_total(10, 8, THREE)
    assert refused.value.detail == {"limit": "max_total_bytes", "max": 10}


@pytest.mark.parametrize("caps", [{"cap_records": 5}, {"cap_bytes": 5}])
def test_a_topic_that_refuses_is_full_at_its_cap(caps: dict[str, int]) -> None:
    config = TopicConfig(discard=Discard.REJECT, **caps)
    room.check_caps("t", config, None, THREE)
    room.check_caps("t", config, holding(2), THREE)
    with pytest.raises(TopicFull, match="is full") as full:
        room.check_caps("t", config, holding(3), THREE)
    assert full.value.detail["head_seq"] == 3
    with pytest.raises(RecordTooLarge, match="6 records and 6 bytes"):
        room.check_caps("t", config, holding(1), Records.of([{"data": 1}] * 6))


def test_a_topic_that_drops_the_oldest_takes_everything() -> None:
    room.check_caps("t", TopicConfig(cap_records=1), holding(3), THREE)
