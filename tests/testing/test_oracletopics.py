from __future__ import annotations

import pytest

from topics.errors import ProducerFenced, RecordTooLarge, StageNotFound, TopicFull, TopicNotFound
from topics.model import Discard, TopicConfig
from topics.testing.oracle import Draft, Receipt, View
from topics.testing.oracletopics import Oracle

T0_MS = 1_748_470_000_000


def drafts(*datas: int) -> list[Draft]:
    return [{"data": data} for data in datas]


def test_topics_stages_and_batches() -> None:
    oracle = Oracle()
    oracle.configure("t", TopicConfig(partitions=2, cap_records=3, discard=Discard.REJECT), T0_MS)
    assert oracle.stage("s", "t", drafts(1, 2), partition=1) == 2
    assert oracle.stage("s2", "t", drafts(3, 4), partition=1) == 2
    with pytest.raises(RecordTooLarge):
        oracle.publish(["s", "s2"], "p", 1, T0_MS)
    assert sorted(oracle.stages) == ["s", "s2"] and oracle.log("t", 1).head_seq == 0
    assert oracle.publish(["s"], "p", 1, T0_MS) == [Receipt(1, 2)]
    assert oracle.publish(["s"], "p", 1, T0_MS) == [Receipt(1, 2, deduped=True)]
    with pytest.raises(ProducerFenced):
        oracle.publish(["s2"], "p", 0, T0_MS)
    with pytest.raises(StageNotFound):
        oracle.publish(["s"], "p", 2, T0_MS)
    assert oracle.abort("s2") and not oracle.abort("s2")
    assert oracle.drop("t") and not oracle.drop("t")
    with pytest.raises(TopicNotFound):
        oracle.log("t")


def test_a_config_acts_on_all_partitions() -> None:
    oracle = Oracle()
    oracle.configure("t", TopicConfig(partitions=2), T0_MS)
    for partition in range(2):
        oracle.log("t", partition).append(drafts(1, 2), T0_MS)
    oracle.configure("t", TopicConfig(partitions=2, cap_records=1, discard=Discard.REJECT), T0_MS)
    for partition in range(2):
        assert oracle.log("t", partition).view(T0_MS) == View(2, 2, 2, 1, 1)
    oracle.stage("s", "t", drafts(3))
    with pytest.raises(TopicFull):
        oracle.publish(["s"], "p", 1, T0_MS)
