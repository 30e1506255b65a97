from __future__ import annotations

import pytest

from topics.client.eventstream import EventParser, ServerEvent

TEXT = (
    b": a comment\n\n"
    b"retry: 2000\nid: begin\n\n"
    b'id: a1\nevent: record\ndata: {"topic":"t"}\n\n'
    b": hb 17\n\n"
    b"event: error\r\ndata: one\r\ndata: two\r\n\r\n"
    b"data:bare\n\n"
    b"event: nothing\n\n"
    b"data: not whole"
)
EVENTS = [
    ServerEvent("record", "a1", b'{"topic":"t"}'),
    ServerEvent("error", "", b"one\ntwo"),
    ServerEvent("message", "", b"bare"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, len(TEXT)])
def test_events_however_they_are_cut(size: int) -> None:
    parser = EventParser()
    found = [event for at in range(0, len(TEXT), size) for event in parser.feed(TEXT[at : at + size])]
    assert found == EVENTS


def test_an_event_may_hold_what_looks_like_another() -> None:
    (event,) = EventParser().feed(b'data: {"text":"\\n\\ndata: x"}\n\n')
    assert event.data == b'{"text":"\\n\\ndata: x"}'
