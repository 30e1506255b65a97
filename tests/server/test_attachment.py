from __future__ import annotations

import logging

import pytest

from tests.server.httprig import get, run, serving
from tests.server.outlets import Tape, streamed, upgraded
from topics.server.streaming import Stream

UPGRADE = get("/", "Connection: Upgrade", "Upgrade: websocket")


def fail(stream: Stream) -> None:
    raise RuntimeError("a bug in an outlet")


@pytest.mark.parametrize("what", ["opened", "filled", "drained", "expired", "stopping", "received"])
def test_an_outlet_that_fails_loses_its_connection_and_nobody_else(what: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            tape = Tape({what: fail})
            rig.answers = lambda request: upgraded(tape)
            caller = await rig.call()
            caller.send(UPGRADE)
            await tape.until("opened")
            stream = tape.open
            if what in ("filled", "drained"):
                caller.writer.transport.pause_reading()  # type: ignore[attr-defined]
                stream.write(b"x" * 8_000_000)
                caller.writer.transport.resume_reading()  # type: ignore[attr-defined]
            elif what == "expired":
                stream.wake_at(0)
                rig.pass_time(1)
            elif what == "stopping":
                rig.protocols[0].drain()
            elif what == "received":
                caller.send(b"hello")
            while await caller.reader.read(65536):
                pass
            await tape.until("closed")
            assert tape.heard[-1] == "closed" and tape.heard.count("closed") == 1

    with caplog.at_level(logging.ERROR, "topics"):
        run(scenario)
    (record,) = caplog.records
    assert record.exc_info is not None and "a bug in an outlet" in str(record.exc_info[1])


def test_a_failing_end_is_logged_and_the_connection_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with serving() as rig:
            tape = Tape({"opened": lambda stream: stream.end(), "closed": fail})
            rig.answers = lambda request: streamed(tape)
            caller = await rig.call()
            for _ in range(2):
                tape.heard.clear()
                caller.send(get())
                await caller.reader.readuntil(b"0\r\n\r\n")
                assert tape.heard == ["opened", "closed"]

    run(scenario)
    assert [record.message for record in caplog.records] == ["the end of a stream failed"] * 2
