from __future__ import annotations

import pytest

from tests.engine.rig import Rig
from tests.server.probing import Probe, serving
from topics import __version__

HEALTH = ["/v0/health", "/healthz"]
READY = ["/v0/ready", "/readyz"]


@pytest.mark.parametrize("path", HEALTH)
def test_a_process_that_answers_is_healthy_whatever_it_is_doing(path: str) -> None:
    probe = Probe(Rig())
    probe.rig.clock.advance(84_012)
    for probe.context.draining in (False, True):
        answer = probe.json(path)
        assert answer.pop("performance").keys() == {"server_total_ms"}
        assert answer == {"status": "ok", "version": __version__, "uptime_ms": 84_012}


def test_the_uptime_is_never_negative() -> None:
    probe = Probe(Rig())
    probe.rig.clock.jump(-5000)
    assert probe.json("/v0/health")["uptime_ms"] == 0


@pytest.mark.parametrize("path", READY)
def test_during_recovery_it_says_how_far_it_is(path: str) -> None:
    probe = Probe(Rig())
    for progress, told in [(0.0, 0.0), (0.41666, 0.417), (1.0001, 1.0)]:
        probe.context.recovery_progress = progress
        answer = probe.get(path)
        assert answer.status == 503
        assert (b"Retry-After", b"1") in answer.headers
        error = probe.json(path)["error"]
        assert error["code"] == "not_ready"
        assert error["detail"] == {"replay_progress": told}


@pytest.mark.parametrize("path", READY)
def test_when_topics_are_served_it_is_ready(path: str) -> None:
    rig = Rig()
    rig.configure("a")
    rig.configure("b")
    with serving(rig) as probe:
        answer = probe.json(path)
        del answer["performance"]
        assert answer == {"status": "ready", "wal_replay_complete": True, "topics": 2}


@pytest.mark.parametrize("path", READY)
def test_while_draining_it_is_not(path: str) -> None:
    with serving(Rig()) as probe:
        probe.context.draining = True
        answer = probe.get(path)
        assert answer.status == 503
        assert (b"Retry-After", b"1") in answer.headers
        assert probe.json(path)["error"]["code"] == "shutting_down"


@pytest.mark.parametrize("path", HEALTH + READY)
def test_probes_take_a_key_only_when_told_to(path: str) -> None:
    rig = Rig()
    with serving(rig, api_keys="k1,k2:write:a.") as probe:
        assert probe.get(path).status == 200
    with serving(rig, api_keys="k1,k2:write:a.", probe_auth=True) as probe:
        refused = probe.get(path)
        assert refused.status == 401
        assert (b"WWW-Authenticate", b"Bearer") in refused.headers
        assert probe.get(path, "k1").status == 200
        assert probe.get(path, "k2").status == 200, "any key does"
    with serving(rig, probe_auth=True) as probe:
        assert probe.get(path).status == 200, "there are no keys to ask for"
