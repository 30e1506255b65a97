from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.storage import frame
from topics.storage.frame import ALIGN, JOIN_BYTES_MAX, Kind

U64 = st.integers(0, 2**64 - 1)


@given(
    kind=st.integers(0, 255),
    log_id=st.integers(0, 2**32 - 1),
    position=U64,
    mark=U64,
    body=st.lists(st.binary(max_size=50), max_size=4),
    salt=U64,
    flags=st.integers(0, 255),
    trailer=st.integers(0, 2**16 - 1),
    trailing=st.binary(max_size=20),
)
def test_what_is_built_is_parsed(
    kind: int,
    log_id: int,
    position: int,
    mark: int,
    body: list[bytes],
    salt: int,
    flags: int,
    trailer: int,
    trailing: bytes,
) -> None:
    built = frame.build(kind, log_id, position, mark, body, salt, flags=flags, trailer=trailer, trailing=trailing)
    data = b"".join(built)
    assert len(data) % ALIGN == 0
    found = frame.parse(memoryview(bytes(16) + data), 16, salt)
    assert found is not None
    assert (found.kind, found.log_id, found.position, found.mark) == (kind, log_id, position, mark)
    assert (found.flags, found.trailer, bytes(found.body)) == (flags, trailer, b"".join(body))
    assert data[found.end - 16 :].startswith(trailing)
    assert not any(data[found.end - 16 + len(trailing) :])


@pytest.mark.parametrize("size", [JOIN_BYTES_MAX, JOIN_BYTES_MAX + 1])
def test_long_and_short_bodies_have_the_same_form(size: int) -> None:
    parts = [b"a" * (size - 5), bytearray(b"b" * 3), memoryview(b"cc")]
    built = frame.build(Kind.FACT, 1, 2, 3, parts, 4)
    data = b"".join(built)
    found = frame.parse(memoryview(data), 0, 4)
    assert found is not None and bytes(found.body) == b"".join(parts)
    assert len(data) == frame.padded(frame.OVERHEAD_BYTES + size)


def test_emit_adds_to_what_is_there_and_says_how_much() -> None:
    out: list[bytes | bytearray | memoryview] = [b"before"]
    size = frame.emit(out, Kind.FACT, 1, 1, 0, [b"body"], 9)
    assert out[0] == b"before" and sum(map(len, out[1:])) == size
    assert out[1:] == frame.build(Kind.FACT, 1, 1, 0, [b"body"], 9)


def test_every_flipped_bit_up_to_the_checksum_is_seen() -> None:
    data = b"".join(frame.build(Kind.FACT, 1, 2, 3, [b"body"], 4))
    end = frame.OVERHEAD_BYTES + 4
    for bit in range(end * 8):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert frame.parse(memoryview(flipped), 0, 4) is None


def test_a_frame_cut_short_or_of_another_file_is_none() -> None:
    data = b"".join(frame.build(Kind.FACT, 1, 2, 3, [b"body"], 4))
    end = frame.OVERHEAD_BYTES + 4
    assert frame.parse(memoryview(data)[:end], 0, 4) is not None
    assert all(frame.parse(memoryview(data)[:cut], 0, 4) is None for cut in range(end))
    assert frame.parse(memoryview(data), 0, 5) is None


def test_the_format_is_for_ever() -> None:
    built = frame.build(11, 1, 2, 3, [b"ab", b"c"], 4, flags=5, trailer=6, trailing=b"\xd5")
    assert b"".join(built).hex(" ", -8) == (
        "5450463103000000 010000000b050600 0200000000000000 0300000000000000 616263c563861d16 11de78d500000000"
    )


def test_the_next_frame_is_found_wherever_it_stands() -> None:
    whole = b"".join(frame.build(Kind.FACT, 1, 2, 3, [b"abc"], 7))
    broken = whole[:-9] + b"x" + whole[-8:]
    other = b"".join(frame.build(Kind.FACT, 1, 2, 3, [b"abc"], 8))
    for before in (
        b"",
        broken,
        other,
        b"1234" + whole + b"5678",
        bytes(1 << 16),
        bytes((1 << 16) - ALIGN),
        bytes(1 << 18),
    ):
        data = memoryview(before + whole + b"more")
        assert frame.next_at(data, 0, len(data), 7) == len(before)
        assert frame.next_at(data, 0, len(before), 7) == len(before), "none is looked for behind the end"
        assert frame.next_at(data, len(before) + ALIGN, len(data), 7) == len(data)
