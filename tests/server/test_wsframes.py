from __future__ import annotations

import json

import pytest
from websockets.frames import Frame, Opcode

from topics.engine.events import Event, Kind
from topics.errors import InvalidRequest, Throttled
from topics.server import wsframes


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536, 70_000])
def test_a_frame_is_what_the_library_would_make(size: int) -> None:
    message = b"x" * size
    assert wsframes.text_frame(message) == Frame(Opcode.TEXT, message).serialize(mask=False)


@pytest.mark.parametrize("kind", Kind)
def test_an_event_names_itself(kind: Kind) -> None:
    event = Event(kind=kind, key="jobs", cursor=3, text=b'"topic":"jobs","head_seq":3}')
    assert json.loads(wsframes.bare(event)) == {"op": kind.value, "topic": "jobs", "head_seq": 3}
    assert wsframes.framed(event) == wsframes.text_frame(wsframes.bare(event))


def test_an_ack_is_the_answer_to_a_write_with_a_name() -> None:
    assert json.loads(wsframes.ack('a"b', b'{"topic":"t","count":1}')) == {
        "op": "ack",
        "request_id": 'a"b',
        "topic": "t",
        "count": 1,
    }


def test_errors_say_the_same_whichever_way_they_came() -> None:
    error = InvalidRequest("no", field="x")
    envelope = b'{"error":{"code":"invalid_request","message":"no","detail":{"field":"x"}},"performance":{}}'
    assert json.loads(wsframes.error(7, error)) == json.loads(wsframes.error_of_answer(7, envelope))
    told = json.loads(wsframes.error(None, Throttled("wait"), topics=["a"]))
    assert told == {"op": "error", "request_id": None, "code": "throttled", "message": "wait", "topics": ["a"]}
