"""A WebSocket: messages in, commands out, and one way to send for answers and events alike.

How it works. What the client sends is read in slices out of `_inbox`. The `websockets` library reads frames and answers
control frames; what it wants to say is written at once. A whole text message waits in `_waiting` until it may be
carried out: while so many publishes are under way, while the client leaves too much unread, or while the connection has
spent its turn (`intake/turns.py`), nothing is, and nothing more is read. So a client that sends faster than it is
served is held back by TCP, and what is kept of it is bounded by one read and one message, and counted with what all
others hold.

What is wrong with a message is answered with an `error` and the connection goes on, as long as the protocol lets it: a
message that is too large to be read or comes in too many fragments (1009), or text that is not UTF-8 (1007), is
answered and ends it.

    normal end          the client's close frame is repeated
    the server stops    publishes under way are answered, then 1001
    slow consumer       what it did not read for so long is given up: an `error`, then 1013, come again later
    silent client       nothing, not even a pong, between two pings: the connection is dropped
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from typing import Final

from websockets.exceptions import PayloadTooBig
from websockets.extensions import Extension
from websockets.frames import CloseCode, Frame, Opcode
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from topics.engine.events import Form
from topics.engine.watcher import Subscription
from topics.errors import InvalidRequest, PayloadTooLarge, Throttled, TopicsError
from topics.limits import KIB, WS_FRAGMENTS_MAX, WS_PING_MS, WS_PUBLISHES_MAX
from topics.server import wsframes
from topics.server.context import Context
from topics.server.intake.turns import REQUEST_BYTES, Budget
from topics.server.principal import Principal
from topics.server.streaming import Stream
from topics.server.wscommands import Commands
from topics.wire.wscommand import request_id_of

NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1000 * NS_PER_MS
SLICE_BYTES_MIN: Final = 1 * KIB
SLICE_BYTES_MAX: Final = 64 * KIB
FRAME_BYTES: Final = 16 * KIB
"""What a frame costs of a turn's budget, beside its bytes."""

_quiet = logging.getLogger(__name__ + ".frames")
"""At its debug level the library would log payloads."""
_quiet.setLevel(logging.WARNING)


class WebSocket:
    """The `Duplex` of an upgraded connection."""

    def __init__(
        self, context: Context, principal: Principal, connection_id: str, extensions: Sequence[Extension]
    ) -> None:
        self._clock = context.clock
        self._message_bytes_max = context.settings.max_body_bytes
        self._slow_ns = context.settings.slow_consumer_timeout_ms * NS_PER_MS
        self._protocol = ServerProtocol(state=OPEN, max_size=self._message_bytes_max, logger=_quiet)
        self._protocol.extensions = list(extensions)
        self._compresses = bool(extensions)
        self.form: Form = wsframes.bare if self._compresses else wsframes.framed
        self._commands = Commands(context, principal, connection_id, self)
        self._stream: Stream
        """From `opened` on; what it is told after its end does nothing."""
        self._inbox = b""
        """What has come and is not read yet, from `_inbox_at` on."""
        self._inbox_at = 0
        self._slice_bytes = SLICE_BYTES_MIN
        self._budget = Budget(context.turns, self._go_on)
        self._share = context.held.share()
        self._is_working = False
        self._pieces: list[bytes] = []
        """Of a message that comes in fragments."""
        self._pieces_bytes = 0
        self._fragments = 0
        self._is_text = True
        self._waiting: deque[bytes] = deque()
        self._holding = False
        """Whether the client is not read from."""
        self._stopping = False
        self._failed = False
        """Whether what still comes is ignored: the last message was no message."""
        self._heard = True
        """Whether something came since the last ping."""
        self._ping_ns = 0
        self._full_since_ns: int | None = None

    # ---- what the connection tells

    def opened(self, stream: Stream) -> None:
        self._stream = stream
        self._ping_ns = self._clock.ticks_ns() + WS_PING_MS * NS_PER_MS
        if stream.full:
            self.filled()
        else:
            self._arm()

    def received(self, data: bytes) -> None:
        self._heard = True
        self._inbox = self._inbox[self._inbox_at :] + data if self._inbox_at < len(self._inbox) else data
        self._inbox_at = 0
        self._go_on()

    def filled(self) -> None:
        self._full_since_ns = self._clock.ticks_ns()
        self._commands.block()
        self._hold()
        self._arm()

    def drained(self) -> None:
        self._full_since_ns = None
        self._commands.unblock()
        self._go_on()

    def expired(self) -> None:
        now_ns = self._clock.ticks_ns()
        if self._full_since_ns is not None and now_ns - self._full_since_ns >= self._slow_ns:
            seconds = self._slow_ns // NS_PER_S
            told = Throttled(f"too much was left unread for {seconds} s; connect again and go on from your last seq")
            self.tell(wsframes.error(None, told))
            self._close(CloseCode.TRY_AGAIN_LATER, "slow consumer")
            return
        if now_ns >= self._ping_ns and not self._keep_alive(now_ns):
            return
        self._arm()

    def stopping(self) -> None:
        self._stopping = True
        self._go_on()
        self._close_if_stopped()

    def closed(self) -> None:
        self._waiting.clear()
        self._forget()
        self._share.release()
        self._commands.close()

    # ---- messages in

    def _go_on(self) -> None:
        """Carry out what waits and read what has come, while there is room for the answers and time in this turn."""
        if self._is_working:
            return
        self._is_working = True
        try:
            self._work()
            while self._inbox_at < len(self._inbox) and not self._waiting and not self._budget.is_spent:
                if self._stream.ended:
                    return
                self._read_slice()
            self._account()
        finally:
            self._is_working = False
        if self._has_room() and not self._waiting and not self._budget.is_spent:
            self._let_go()
        else:
            self._hold()

    def _read_slice(self) -> None:
        """Small slices where frames are small: the library reads all frames of a slice at once."""
        protocol = self._protocol
        piece = self._inbox[self._inbox_at : self._inbox_at + self._slice_bytes]
        self._inbox_at += len(piece)
        protocol.receive_data(piece)
        frames = protocol.events_received()
        self._slice_bytes = SLICE_BYTES_MIN if frames else min(2 * self._slice_bytes, SLICE_BYTES_MAX)
        self._budget.spend(len(piece) + FRAME_BYTES * len(frames))
        for event in frames:
            assert isinstance(event, Frame)
            self._take(event)
        if isinstance(protocol.parser_exc, PayloadTooBig) and not self._failed:
            self._failed = True
            most = self._message_bytes_max
            told = PayloadTooLarge(f"the message has more than {most} bytes", max_bytes=most)
            self.tell(wsframes.error(None, told))
        self._write_protocol()

    def _account(self) -> None:
        """Count what is held of a message that has not come whole."""
        unread_bytes = len(self._inbox) - self._inbox_at
        try:
            self._share.set(unread_bytes + self._pieces_bytes + len(self._protocol.reader.buffer), True)
        except Throttled as error:
            self._give_up(error, CloseCode.TRY_AGAIN_LATER, "too much is held of unfinished messages")

    def _give_up(self, error: TopicsError, code: CloseCode, reason: str) -> None:
        """Answer what cannot be read any further, and end the connection."""
        self._failed = True
        self._forget()
        self.tell(wsframes.error(None, error))
        self._protocol.fail(code, reason)
        self._share.release()
        self._write_protocol()

    def _forget(self) -> None:
        self._inbox, self._inbox_at = b"", 0
        self._pieces.clear()
        self._pieces_bytes = 0

    def _take(self, frame: Frame) -> None:
        if frame.opcode in (Opcode.TEXT, Opcode.BINARY) and not self._failed:
            self._is_text = frame.opcode is Opcode.TEXT
            self._fragments = 0
        elif frame.opcode is not Opcode.CONT or self._failed:
            return
        self._fragments += 1
        if self._fragments > WS_FRAGMENTS_MAX:
            told = PayloadTooLarge(
                f"the message has more than {WS_FRAGMENTS_MAX} fragments; send larger ones", max=WS_FRAGMENTS_MAX
            )
            self._give_up(told, CloseCode.MESSAGE_TOO_BIG, "too many fragments")
            return
        if frame.data:
            self._pieces.append(bytes(frame.data))
            self._pieces_bytes += len(frame.data)
        if frame.fin:
            message = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
            self._pieces.clear()
            self._pieces_bytes = 0
            self._take_message(message)

    def _take_message(self, message: bytes) -> None:
        if not self._is_text:
            refused = InvalidRequest("a binary message is not understood", expected="JSON in a text message")
            self.tell(wsframes.error(request_id_of(message), refused))
            return
        if not message.isascii():
            try:
                message.decode()
            except UnicodeDecodeError as error:
                self._failed = True
                text = f"the message is not UTF-8: {error.reason} at byte {error.start}"
                self.tell(wsframes.error(None, InvalidRequest(text, expected="UTF-8")))
                self._protocol.fail(CloseCode.INVALID_DATA, "the message is not UTF-8")
                return
        self._waiting.append(message)
        self._work()

    def _work(self) -> None:
        """Carry out what waits, while there is room for the answers and time in this turn."""
        commands = self._commands
        while self._waiting and self._has_room() and not self._budget.is_spent:
            self._budget.spend(REQUEST_BYTES)
            commands.carry_out(self._waiting.popleft())

    def _has_room(self) -> bool:
        stream = self._stream
        return not stream.ended and not stream.full and self._commands.in_flight < WS_PUBLISHES_MAX

    def _hold(self) -> None:
        if not self._holding:
            self._holding = True
            self._stream.pause_reading()

    def _let_go(self) -> None:
        if self._holding:
            self._holding = False
            self._heard = True
            self._stream.resume_reading()

    # ---- messages out

    def tell(self, message: bytes) -> None:
        if self._compresses and self._protocol.state is OPEN:
            self._protocol.send_text(message)
            self._write_protocol()
        else:
            # The library may have met the end of the connection already, but its close frame is not written yet.
            self._stream.write(wsframes.text_frame(message))

    def forward(self, subscription: Subscription, frame: bytes) -> None:
        if self._compresses:
            self.tell(frame)
        else:
            self._stream.write(frame)

    def answered(self) -> None:
        if self._holding:
            self._go_on()
        self._close_if_stopped()

    def _write_protocol(self) -> None:
        """What the library has to say: pongs, compressed messages, the close frame."""
        for piece in self._protocol.data_to_send():
            if piece:
                self._stream.write(piece)
        if self._protocol.close_expected():
            self._stream.end(close=True)

    # ---- time and the end

    def _keep_alive(self, now_ns: int) -> bool:
        """Ping; False when the client is dropped because it has not answered the last one."""
        # Who is not read from cannot be heard.
        if not self._heard and not self._holding:
            self._stream.abort()
            return False
        self._heard = False
        self._ping_ns = now_ns + WS_PING_MS * NS_PER_MS
        self._protocol.send_ping(b"")
        self._write_protocol()
        return True

    def _arm(self) -> None:
        slow_ns = self._ping_ns if self._full_since_ns is None else self._full_since_ns + self._slow_ns
        self._stream.wake_at(min(self._ping_ns, slow_ns))

    def _close_if_stopped(self) -> None:
        if self._stopping and not self._commands.in_flight:
            self._close(CloseCode.GOING_AWAY, "the server is stopping")

    def _close(self, code: CloseCode, reason: str) -> None:
        if self._protocol.state is OPEN:
            self._protocol.send_close(code, reason)
            self._write_protocol()
