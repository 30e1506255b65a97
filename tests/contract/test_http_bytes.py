"""Anything, sent to a real socket in any pieces: no crash, no hang, no connection left, every request answered."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.server.httprig import Answer, Caller, Rig, run, serving
from tests.server.httpstreams import Sent, cuts, mutated, noise, streams
from topics.server.message import Response


async def converse(rig: Rig, pieces: list[bytes]) -> bytes:
    """Sends piece by piece, each once the one before has arrived, and returns all that comes back."""
    caller = await rig.call()
    await rig.until_connections(1)
    protocol = rig.protocols[-1]
    sent_bytes = 0
    for piece in pieces:
        if caller.writer.transport.is_closing():
            break
        caller.send(piece)
        sent_bytes += len(piece)
        while protocol.received_bytes < sent_bytes and len(rig.connections):
            await asyncio.sleep(0)
    if not caller.writer.transport.is_closing():
        caller.end_sending()
    heard = b""
    while piece := await caller.reader.read(65536):
        heard += piece
    await rig.hang_up()
    await rig.until_connections(0)
    return heard


async def parse(heard: bytes, head_only: list[bool]) -> list[Answer]:
    reader = asyncio.StreamReader()
    reader.feed_data(heard)
    reader.feed_eof()
    caller = Caller(reader, None)  # type: ignore[arg-type]
    answers: list[Answer] = []
    while not reader.at_eof():
        answer = await caller.answer(bool(head_only) and head_only[0])
        if answer.status != 100:
            head_only = head_only[1:]
            answers.append(answer)
    return answers


def numbered(rig: Rig) -> None:
    rig.answers = lambda request: Response(200, b"%d" % len(rig.requests))


def check_any(stream: bytes, pieces: list[bytes], loop: str) -> None:
    async def scenario() -> None:
        problems: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context))
        async with serving(header_bytes_max=4000, body_bytes_max=10_000, pipeline_max=3) as rig:
            numbered(rig)
            heard = await converse(rig, pieces)
            if b"HEAD" not in stream:
                answers = await parse(heard, [])
                served = [answer for answer in answers if answer.status == 200]
                assert [answer.body for answer in served] == [b"%d" % (n + 1) for n in range(len(rig.requests))]
                assert all(
                    answer.status in (400, 408, 413, 415, 417, 431) for answer in answers if answer not in served
                )
        assert problems == []

    run(scenario, loop)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(streams, st.data())
def test_valid_requests_are_answered_once_and_in_order(loop: str, stream: list[Sent], data: st.DataObject) -> None:
    pieces = data.draw(cuts(b"".join(sent.message for sent in stream)))

    async def scenario() -> None:
        async with serving(pipeline_max=3) as rig:
            numbered(rig)
            heard = await converse(rig, pieces)
            answers = await parse(heard, [sent.message.startswith(b"HEAD") for sent in stream])
            assert [answer.status for answer in answers] == [200] * len(stream)
            bodies = [answer.body for answer in answers if answer.body]
            assert bodies == [b"%d" % (n + 1) for n, sent in enumerate(stream) if not sent.message.startswith(b"HEAD")]
            assert [(request.path, request.body) for request in rig.requests] == [
                (sent.path, sent.body) for sent in stream
            ]

    run(scenario, loop)


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutated(), st.data())
def test_mutated_requests(loop: str, stream: bytes, data: st.DataObject) -> None:
    check_any(stream, data.draw(cuts(stream)), loop)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(noise | st.binary(max_size=200), st.data())
def test_noise(stream: bytes, data: st.DataObject) -> None:
    check_any(stream, data.draw(cuts(stream)), "uvloop")
