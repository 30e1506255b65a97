from __future__ import annotations

import pytest

from tests.server.httprig import get, run, serving
from tests.server.outlets import Tape, streamed
from topics.server.streaming import chunk


def test_a_chunk_says_how_long_it_is() -> None:
    assert chunk(b"x" * 26) == b"1a\r\n" + b"x" * 26 + b"\r\n"


def test_a_response_is_closed_once_and_gives_its_slot_back_even_when_its_outlet_fails() -> None:
    released: list[str] = []

    class Failing(Tape):
        def closed(self) -> None:
            raise RuntimeError("a bug")

    response = streamed(Failing())
    response.release = lambda: released.append("slot")
    with pytest.raises(RuntimeError):
        response.close()
    assert released == ["slot"]
    with pytest.raises(AssertionError, match="once"):
        response.close()


def test_a_stream_that_has_ended_is_harmless() -> None:
    async def scenario() -> None:
        async with serving() as rig:
            tape = Tape()
            rig.answers = lambda request: streamed(tape)
            caller = await rig.call()
            caller.send(get())
            await tape.until("opened")
            stream = tape.open
            stream.end()
            stream.end()
            stream.send(b"late")
            stream.write(b"late")
            stream.abort()
            stream.wake_at(0)
            stream.pause_reading()
            stream.resume_reading()
            assert (stream.ended, stream.full, stream.unsent_bytes) == (True, False, 0)
            assert (await caller.reader.readuntil(b"0\r\n\r\n")).endswith(b"\r\n\r\n0\r\n\r\n")
            rig.answers = lambda request: streamed(Tape({"opened": lambda stream: stream.end()}))
            caller.send(get())
            assert (await caller.reader.readuntil(b"0\r\n\r\n")).startswith(b"HTTP/1.1 200 OK\r\n")
            assert tape.heard == ["opened", "closed"]

    run(scenario)
