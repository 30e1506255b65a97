from __future__ import annotations

from topics.server.grpc.stopping import Stopping


def test_streams_are_ended_once_those_that_left_are_not_and_latecomers_at_once() -> None:
    stopping = Stopping()
    ended: list[str] = []
    ends = {name: (lambda name=name: ended.append(name)) for name in ("open", "left", "late")}
    stopping.add(ends["open"])
    stopping.add(ends["left"])
    stopping.remove(ends["left"])
    assert ended == [] and not stopping.is_over
    stopping.stop()
    assert ended == ["open"] and stopping.is_over
    stopping.add(ends["late"])
    assert ended == ["open", "late"]
