"""Composite cursors: what is handed out comes back as it was, and nothing else is taken for one."""

from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.errors import InvalidRequest
from topics.limits import U64_MAX
from topics.wire.streamcursor import (
    Checkpoint,
    Positions,
    decode_stream_cursor,
    encode_checkpoint,
    encode_positions,
)

keys = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,20}(#[1-9])?", fullmatch=True)
seqs = st.dictionaries(keys, st.integers(0, U64_MAX))


def test_an_id_is_the_map_it_stands_for() -> None:
    assert encode_positions({"jobs": 5210, "events": 88130}) == b"eyJqb2JzIjo1MjEwLCJldmVudHMiOjg4MTMwfQ"


@given(seqs, st.dictionaries(keys, st.integers(0, U64_MAX), max_size=2))
def test_positions_come_back(found: dict[str, int], epochs: dict[str, int]) -> None:
    text = encode_positions(found, epochs).decode()
    assert decode_stream_cursor(text) == Positions(found, epochs)
    assert decode_stream_cursor(text + "=" * (-len(text) % 4)) == Positions(found, epochs), "padded, too"


def test_an_id_has_no_character_that_an_address_cannot_carry() -> None:
    ids = [encode_checkpoint(session, 1) for session in ("~~~", "~~~~", "???", "????", "?????")]
    assert any(b"-" in each for each in ids) and any(b"_" in each for each in ids)
    assert not any(character in each for each in ids for character in b"+/=")


@given(st.text(max_size=20), st.integers(0, U64_MAX))
def test_checkpoints_come_back(session: str, at: int) -> None:
    assert decode_stream_cursor(encode_checkpoint(session, at).decode()) == Checkpoint(session, at)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b'{"jobs":"1"}',
        b'{"jobs":-1}',
        b'{"jobs":18446744073709551616}',
        b'{"jobs":1.5}',
        b'{"jobs":{"a":1}}',
        b'{"$epochs":3}',
        b'{"$at":1}',
        b'{"$session":"x"}',
        b'{"$session":3,"$at":1}',
        b'{"$session":"x","$at":-1}',
        b"\xff",
    ],
)
def test_other_content_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidRequest, match="Last-Event-ID is not one that a stream sent"):
        decode_stream_cursor(urlsafe_b64encode(content).decode(), "Last-Event-ID")


@given(st.text(max_size=30))
def test_any_text_is_a_cursor_or_refused(text: str) -> None:
    try:
        found = decode_stream_cursor(text)
    except InvalidRequest as error:
        assert error.detail["field"] == "cursor"
    else:
        assert isinstance(found, Positions | Checkpoint)


def test_a_cursor_that_is_too_long_is_not_even_looked_at() -> None:
    with pytest.raises(InvalidRequest, match="not one that a stream sent"):
        decode_stream_cursor("A" * (1 << 20 | 1))
