from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

from tests.client.rig import soon
from tests.server.piping import Pipe
from tests.server.wsrig import Rig, Talker, run
from topics.limits import WS_PING_MS, WS_PUBLISHES_MAX
from topics.server.principal import EVERYBODY
from topics.server.streaming import Upgrade
from topics.server.ws import WebSocket

PING_S = WS_PING_MS / 1000


def stop_reading(talker: Talker) -> None:
    talker.socket.transport.pause_reading()


def read_on(talker: Talker) -> None:
    talker.socket.transport.resume_reading()


# ---- keeping alive


def test_a_client_that_answers_pings_stays(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.talk() as talker:
            for _ in range(5):
                socket = rig.socket
                await rig.until(lambda socket=socket: socket._heard)  # type: ignore[misc]
                rig.pass_time(PING_S + 1)
            assert (await talker.ask("ping"))["op"] == "pong"

    run(tmp_path, scenario)


def test_a_client_that_is_silent_is_dropped(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        reader, writer = await rig.call()
        rig.pass_time(PING_S + 1)
        assert await soon(reader.readexactly(2)) == b"\x89\x00"
        assert rig.stream_count == 1
        rig.pass_time(PING_S + 1)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await soon(reader.readexactly(1))
        await rig.until(lambda: rig.stream_count == 0)
        writer.close()

    run(tmp_path, scenario)


def test_pings_come_at_their_time_and_not_before(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        reader, writer = await rig.call()
        rig.pass_time(PING_S - 1)
        writer.write(b"\x8a\x80aaaa")
        rig.pass_time(0.5)
        assert rig.socket._ping_ns > rig.clock.ticks_ns()
        rig.pass_time(1)
        assert await soon(reader.readexactly(2)) == b"\x89\x00"
        writer.close()

    run(tmp_path, scenario)


# ---- slow consumers


def test_a_slow_consumer_is_told_and_closed_and_nobody_else_is_held_up(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.api.write("jobs", 0)
        async with rig.talk(close_timeout=1) as slow, rig.talk() as quick:
            await slow.ask("subscribe", topic="jobs", tail=True, max_batch_bytes=1)
            await quick.ask("subscribe", topic="jobs", tail=True)
            await slow.hear_ops("caught_up")
            await quick.hear_ops("caught_up")
            stop_reading(slow)
            sockets = [each._attached.duplex for each in rig.server._connections._open]  # type: ignore[attr-defined]
            seqs = 1
            while all(each._full_since_ns is None for each in sockets):
                seqs = (await rig.api.write("jobs", "x" * 200_000))["last_seq"]
                assert (await quick.hear_ops("record"))[0]["to_seq"] == seqs
            seqs = (await rig.api.write("jobs", "more than fits"))["last_seq"]
            await quick.hear_ops("record")
            rig.pass_time(5)
            await quick.ask("ping")
            rig.pass_time(31)
            read_on(slow)
            heard = []
            with pytest.raises(ConnectionClosed):
                while True:
                    heard.append(await slow.hear())
            assert slow.socket.close_code == CloseCode.TRY_AGAIN_LATER
            assert (heard[-1]["op"], heard[-1]["code"]) == ("error", "throttled")
            records = [each for each in heard if each["op"] == "record"]
            assert [each["to_seq"] for each in records] == [each["from_seq"] + 1 for each in records]
            last_seq = records[-1]["to_seq"]
            assert last_seq < seqs, "what did not fit was not made"
            assert (await quick.ask("ping"))["op"] == "pong"
        async with rig.talk() as again:
            await again.ask("subscribe", topic="jobs", from_seq=last_seq)
            assert (await again.hear_ops("record"))[0]["from_seq"] == last_seq

    run(tmp_path, scenario, watch_buffer_bytes=100_000)


class HeldPipe(Pipe):
    """A connection that can be kept from reading."""

    held = False

    def pause_reading(self) -> None:
        self.held = True


def test_a_socket_that_opens_full_has_the_time_of_a_slow_client(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        socket = WebSocket(rig.server._context, EVERYBODY, "c", [])
        pipe = HeldPipe(Upgrade(101, outlet=socket, buffer_bytes=1000), full=True)
        assert pipe.held, "its messages wait"
        rig.clock.advance(999)
        pipe.tick(rig.clock.ticks_ns())
        assert not pipe.ended
        rig.clock.advance(1)
        pipe.tick(rig.clock.ticks_ns())
        assert pipe.ended and b"too much was left unread" in pipe.unread

    run(tmp_path, scenario, slow_consumer_timeout_ms=1000)


def test_a_consumer_that_reads_again_in_time_gets_all_of_it(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.api.write("jobs", 0)
        async with rig.talk() as talker:
            await talker.ask("subscribe", topic="jobs", tail=True)
            await talker.hear_ops("caught_up")
            stop_reading(talker)
            last_seq = 1
            while rig.socket._full_since_ns is None:
                last_seq = (await rig.api.write("jobs", "x" * 200_000))["last_seq"]
            last_seq = (await rig.api.write("jobs", *range(10)))["last_seq"]
            rig.pass_time(20)
            read_on(talker)
            at = 1
            while at < last_seq:
                heard = await talker.hear()
                if heard["op"] == "record":
                    assert heard["from_seq"] == at
                    at = heard["to_seq"]
            rig.pass_time(20)
            assert rig.socket._full_since_ns is None
            read = await talker.ask("ping")
            assert read["op"] in ("pong", "caught_up")

    run(tmp_path, scenario, watch_buffer_bytes=100_000)


# ---- publishes


def test_no_more_publishes_are_under_way_than_may_be(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        most = 0
        async with rig.talk() as talker:
            count = 10 * WS_PUBLISHES_MAX
            socket = rig.socket

            async def send_all() -> None:
                for number in range(count):
                    await talker.say("publish", topic="jobs", records=[{"data": number}], request_id=number)

            sending = asyncio.create_task(send_all())
            for _ in range(count):
                assert (await talker.hear())["op"] == "ack"
                most = max(most, socket._commands.in_flight)
            await sending
            assert 0 < most <= WS_PUBLISHES_MAX
            assert not socket._holding and not socket._waiting

    run(tmp_path, scenario)


def test_a_client_that_reads_no_acks_is_not_read_from(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        async with rig.talk(write_limit=2**20) as talker:
            socket = rig.socket
            stop_reading(talker)
            pings = [json.dumps({"op": "ping", "request_id": "x" * 250})] * 50_000

            async def send_all() -> None:
                for ping in pings:
                    await talker.socket.send(ping)

            sending = asyncio.create_task(send_all())
            await rig.until(lambda: socket._full_since_ns is not None)
            assert socket._holding
            assert len(socket._waiting) < 5000, "one read at most"
            # Not being read from is not being silent.
            for _ in range(3):
                rig.pass_time(PING_S + 1)
            read_on(talker)
            for _ in pings:
                assert (await talker.hear())["op"] == "pong"
            await sending

    run(tmp_path, scenario, watch_buffer_bytes=20_000, slow_consumer_timeout_ms=600_000)


# ---- the end


def test_what_comes_late_to_a_socket_that_has_ended_does_no_harm(tmp_path: Path) -> None:
    async def scenario(rig: Rig) -> None:
        await rig.api.write("jobs", 1)
        async with rig.talk() as talker:
            await talker.ask("subscribe", topic="jobs", tail=True)
            await talker.hear_ops("caught_up")
            socket = rig.socket
            assert socket._commands._watcher is not None
            subscription = socket._commands._watcher.subscriptions["jobs"]
        await rig.until(lambda: rig.stream_count == 0)
        # As a publish that was under way when its client left, and a server that stops behind it.
        socket.tell(b"{}")
        socket.forward(subscription, b"{}")
        socket.received(b"")
        socket.stopping()
        socket.answered()
        assert rig.watched_count == 0 and not socket._waiting

    run(tmp_path, scenario)
