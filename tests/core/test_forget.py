"""Producers of batches: remembered for good, bounded, and forgotten by command."""

from __future__ import annotations

import pytest

from tests.core.rig import T0_MS, Rig, frozen
from tests.core.test_batch import staged_rig
from topics.core import batch as module
from topics.errors import ProducerFenced, StageConflict, TooManyProducers
from topics.limits import PUBLISHED_KEPT_MS
from topics.producermodel import ForgottenProducer


def test_many_batches_of_others_never_forget_the_newest_of_a_producer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PUBLISHED_ANSWERS_MAX", 1)
    rig = Rig()
    rig.configure()
    rig.stage("s", {"data": "first"})
    first = rig.publish("s", producer_id="dormant", epoch=5)
    for epoch in range(4):
        for name in ("a", "b", f"~job-{epoch}"):
            rig.stage("s", {"data": name})
            rig.publish("s", producer_id=name, epoch=epoch)
    rig.now_ms += 400 * PUBLISHED_KEPT_MS
    for one in (rig, rig.replayed()):
        batches = one.machine.batches
        batches.forget_before(one.now_ms)
        one.stage("again", {"data": "first"})
        again = one.publish("again", producer_id="dormant", epoch=5)
        assert (again.written, again.deduped) == (first.written, True)
        with pytest.raises(ProducerFenced):
            one.publish("again", producer_id="dormant", epoch=4)
        assert batches.newest_epoch == {"dormant": 5, "a": 3, "b": 3} and batches.kept_count == 3
        assert not batches.passing


def test_a_one_off_producer_is_forgotten_after_a_day() -> None:
    rig = staged_rig()
    rig.publish("s1", producer_id="~job", epoch=5)
    batches = rig.machine.batches
    batches.forget_before(T0_MS + PUBLISHED_KEPT_MS - 1)
    assert batches.newest_epoch == {"~job": 5}
    batches.forget_before(T0_MS + PUBLISHED_KEPT_MS)
    assert (batches.newest_epoch, list(batches.by_producer), batches.kept_count) == ({}, [], 0)


def test_too_many_producers_of_batches_refuse_new_ones_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PRODUCERS_MAX", 1)
    rig = staged_rig()
    rig.publish("s1", producer_id="known", epoch=1)
    before = frozen(rig)
    with pytest.raises(TooManyProducers) as caught:
        rig.decide("s2", producer_id="new", epoch=1)
    assert caught.value.detail == {"producer_id": "new", "max": 1} and frozen(rig) == before
    assert "topics producer forget" in caught.value.message
    rig.publish("s2", producer_id="~job", epoch=1)
    rig.publish("s3", producer_id="known", epoch=2)
    rig.stage("s4", {"data": 5}, topic="t")
    rig.forget("known")
    rig.publish("s4", producer_id="new", epoch=1)
    assert rig.replayed().machine.batches.newest_epoch == {"~job": 1, "new": 1}


def test_a_forgotten_producer_of_batches_is_fenced_by_nothing() -> None:
    rig = staged_rig()
    rig.publish("s1", epoch=5)
    assert rig.forget("p") == ForgottenProducer(producer_id="p", forgotten=True)
    assert rig.forget("p") == ForgottenProducer(producer_id="p", forgotten=False)
    for one in (rig, rig.replayed()):
        assert not one.machine.batches.by_producer
        assert one.publish("s2", epoch=1).written[0].first_seq == 2


def test_a_producer_whose_batch_is_being_published_is_not_forgotten() -> None:
    rig = staged_rig()
    rig.decide("s1")
    before = frozen(rig)
    with pytest.raises(StageConflict, match="is being published"):
        rig.forget("p")
    assert frozen(rig) == before
