from __future__ import annotations

import pytest

from tests.engine.rig import Rig, with_wal
from tests.server.probing import Probe, serving
from topics.errors import InvalidSetting, NotReady, ShuttingDown


def test_a_handler_gets_the_host_only_while_topics_are_served() -> None:
    probe = Probe(Rig())
    probe.context.recovery_progress = 0.5
    with pytest.raises(NotReady, match="50%") as caught:
        probe.context.ready()
    assert caught.value.detail == {"replay_progress": 0.5}
    with serving(Rig()) as probe:
        assert probe.context.ready() is probe.context.host
        probe.context.draining = True
        with pytest.raises(ShuttingDown):
            probe.context.ready()


def test_it_cannot_be_made_with_malformed_keys() -> None:
    with pytest.raises(InvalidSetting, match="TOPICS_API_KEYS: entry 1"):
        Probe(Rig(), api_keys="k:reed")


def test_the_throttle_feels_the_queues_of_the_wal() -> None:
    rig = Rig(with_wal(queue_bytes_max=10_000))
    rig.configure("odd")
    with serving(rig) as probe:
        rig.submit("odd", "x" * 6_000)
        probe.context.throttle.beat()
        assert probe.context.throttle.share == 0.5
        rig.work()
        probe.context.throttle.beat()
        assert probe.context.throttle.share > 0.5


def test_before_there_is_an_engine_it_feels_nothing() -> None:
    probe = Probe(Rig())
    probe.context.throttle.beat()
    assert probe.context.throttle.share == 1.0
