from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.server.httprig import chunked, get, post
from tests.server.httpstreams import Sent, cuts, mutated, noise, streams
from topics.errors import HeadersTooLarge, InvalidRequest, PayloadTooLarge, TopicsError
from topics.server.encoding import gunzip
from topics.server.httpoptions import HttpOptions
from topics.server.requesthead import RequestHead
from topics.server.requestparser import FORGETFUL_AFTER, Part, RequestParser

OPTIONS = HttpOptions(header_bytes_max=2000, body_bytes_max=1000)

Seen = tuple[str, str, dict[str, str], bytes]


class Taken:
    """Takes every request until the one that says close, as a connection does."""

    def __init__(self) -> None:
        self.requests: list[tuple[RequestHead, bytes]] = []
        self.events: list[str] = []
        self.closed = False
        self.returned = b""

    @property
    def seen(self) -> list[Seen]:
        return [(head.method, head.path, dict(head.headers), body) for head, body in self.requests]

    def began(self, part: Part) -> None:
        self.events.append(part.name)

    def take(self, head: RequestHead, body: bytes) -> None:
        if not self.closed:
            self.requests.append((head, body))
            self.closed = not head.keep_alive

    def send_continue(self) -> None:
        self.events.append("continue")

    def may_take(self) -> bool:
        return not self.closed

    def put_back(self, data: bytes) -> None:
        self.returned += data

    def learned(self, head_bytes: bytes, head: RequestHead) -> None:
        self.events.append("learned")


def read(pieces: list[bytes], shortcut: bool) -> tuple[list[Seen], type[TopicsError] | None]:
    taken = Taken()
    parser = RequestParser(OPTIONS, taken)
    for piece in pieces:
        try:
            at = 0
            if shortcut:
                at = parser.take_known(piece)
                at += parser.learn(piece[at:])
            if not taken.closed:
                parser.feed(piece[at:])
        except TopicsError as error:
            return taken.seen, type(error)
    return taken.seen, None


def byte_by_byte(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


@given(streams, st.data())
def test_every_request_arrives_once_in_order_however_it_is_cut(stream: list[Sent], data: st.DataObject) -> None:
    pieces = data.draw(cuts(b"".join(sent.message for sent in stream)))
    requests, error = read(pieces, shortcut=True)
    assert error is None
    arrived = [
        (path, gunzip(body, 1000) if "content-encoding" in headers else body) for _, path, headers, body in requests
    ]
    assert arrived == [(sent.path, sent.body) for sent in stream]


@settings(max_examples=300)
@given(mutated() | noise, st.data())
def test_the_shortcut_and_the_cuts_change_nothing(stream: bytes, data: st.DataObject) -> None:
    expected = read(byte_by_byte(stream), shortcut=False)
    assert read([stream], shortcut=True) == expected
    assert read(data.draw(cuts(stream)), shortcut=True) == expected


def test_a_head_is_remembered_and_a_connection_with_ever_other_heads_stops_trying() -> None:
    taken = Taken()
    parser = RequestParser(OPTIONS, taken)
    message = post(b"abc")
    assert parser.take_known(message) == 0
    parser.feed(message[parser.learn(message) :])
    heads = taken.events.count("HEAD")
    assert parser.take_known(message * 3 + message[:-1]) == 3 * len(message)
    assert len(taken.requests) == 4 and taken.events.count("HEAD") == heads
    for number in range(FORGETFUL_AFTER):
        other = get(f"/{number}")
        assert parser.learn(other) == len(other)
    assert parser.learn(get("/one-more")) == 0


def test_two_heads_in_turn_are_both_remembered() -> None:
    taken = Taken()
    parser = RequestParser(OPTIONS, taken)
    take, ack = post(b"abc"), post(b"defgh")
    for message in (take, ack):
        parser.feed(message[parser.learn(message) :])
    heads = taken.events.count("HEAD")
    assert parser.take_known(take + ack + take + take + ack) == 3 * len(take) + 2 * len(ack)
    assert [body for _, body in taken.requests] == [b"abc", b"defgh"] * 2 + [b"abc", b"abc", b"defgh"]
    assert taken.events.count("HEAD") == heads
    third = get("/third")
    assert parser.take_known(third) == 0
    parser.learn(third)
    assert parser.take_known(ack) + parser.take_known(third) == len(ack) + len(third)
    assert parser.take_known(take) == 0, "the one before the last two is forgotten"


def test_nothing_is_known_behind_a_request_that_ends_the_connection() -> None:
    taken = Taken()
    parser = RequestParser(OPTIONS, taken)
    message = post(b"abc")
    parser.feed(message[parser.learn(message) :])
    taken.take = lambda head, body: parser.close()  # type: ignore[method-assign]
    assert parser.take_known(message * 2) == len(message)


@pytest.mark.parametrize(
    "message",
    [b"\r\n" + get(), chunked(b"x"), get("/", "Connection: close"), b"GET / HTTP/1.0\r\n\r\n"],
    ids=["blank line", "chunked", "close", "1.0"],
)
def test_a_head_that_does_not_tell_all_is_not_remembered(message: bytes) -> None:
    parser = RequestParser(OPTIONS, Taken())
    parser.feed(message[parser.learn(message) :])
    assert parser.take_known(message) == 0


def test_limits_hold_in_the_middle_of_things() -> None:
    for data, error in [
        (get("/", "X: " + "x" * 3000), HeadersTooLarge),
        (b"GET /" + b"x" * 3000, HeadersTooLarge),
        (chunked(b"x" * 1001), PayloadTooLarge),
        (chunked(b"x", trailer=b"X: " + b"x" * 3000), HeadersTooLarge),
        (chunked(*[b"x"] * 900).replace(b"\n1\r\n", b"\n1;" + b"y" * 2500 + b"\r\n", 1), HeadersTooLarge),
        (get("/", "Content-Length: 0", "Content-Length: 0"), InvalidRequest),
    ]:
        assert read(byte_by_byte(data), shortcut=True) == ([], error)
    just = get("/", "X: " + "x" * 1900)
    assert len(read(byte_by_byte(just), shortcut=True)[0]) == 1
    assert len(read(byte_by_byte(chunked(*[b"x"] * 1000)), shortcut=True)[0]) == 1


def test_a_client_waits_for_a_word_once() -> None:
    taken = Taken()
    parser = RequestParser(OPTIONS, taken)
    for piece in byte_by_byte(post(b"abc", "Expect: 100-continue", "Connection: upgrade", "Upgrade: h2c")):
        parser.feed(piece)
    assert taken.events.count("continue") == 1
    assert [body for _, body in taken.requests] == [b"abc"]


def test_a_body_that_looks_like_the_remembered_head_is_a_body() -> None:
    known = post(b"abc")
    # A chunked head is not remembered itself, so the one before it still is.
    before, _, behind = chunked(known).partition(known)
    pieces = [known, known, before, known, behind]
    requests, error = read(pieces, shortcut=True)
    assert error is None
    assert [body for *_, body in requests] == [b"abc", b"abc", known]


def test_the_offer_of_a_websocket_is_left_to_the_handler_and_what_is_behind_it_too() -> None:
    class Blocked(Taken):
        """Takes one request, and no more for now."""

        def may_take(self) -> bool:
            return not self.requests

    taken = Blocked()
    parser = RequestParser(OPTIONS, taken)
    parser.feed(get("/ws", "Connection: Upgrade", "Upgrade: WebSocket") + b"\x81\x00")
    ((head, body),) = taken.requests
    assert (head.path, head.headers["upgrade"], body, taken.returned) == ("/ws", "WebSocket", b"", b"\x81\x00")
    assert not head.repeatable
    plain = Taken()
    RequestParser(OPTIONS, plain).feed(get("/ws", "Connection: Upgrade", "Upgrade: h2c") + get("/next"))
    assert [path for _, path, _, _ in plain.seen] == ["/ws", "/next"]
    assert "upgrade" not in plain.seen[0][2]


def test_it_knows_whose_body_is_coming() -> None:
    parser = RequestParser(OPTIONS, Taken())
    assert parser.head is None
    parser.feed(post(b"hello", path="/a")[:-2])
    assert parser.head is not None and (parser.head.method, parser.head.path) == ("POST", "/a")
    parser.feed(b"lo")
    assert parser.head is None
    parser.feed(post(b"hello")[:-2])
    parser.close()
    assert parser.head is None
