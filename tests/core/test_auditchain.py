"""The chain of the audit log: whatever is done to it shows."""

from __future__ import annotations

import pytest

from topics.core.auditchain import FIRST_PREVIOUS, Link, follow, forge, link_of


def chain(count: int, start: int = 1, previous: str = FIRST_PREVIOUS) -> list[bytes]:
    lines = []
    for seq in range(start, start + count):
        line, previous = forge({"action": "a", "name": f'n"{seq}\\', "detail": {"x": ["ü", None]}}, seq, previous)
        lines.append(line)
    return lines


LINES = chain(5)


def test_a_whole_chain_holds() -> None:
    last, broken = follow(LINES)
    assert broken is None and last == link_of(LINES[-1]) and last is not None and last.seq == 5
    assert follow([]) == (None, None)


def test_it_may_begin_later_and_go_on_from_a_link() -> None:
    assert follow(LINES[2:])[1] is None
    assert follow(LINES[2:], link_of(LINES[1]))[1] is None
    broken = follow(LINES[3:], link_of(LINES[1]))[1]
    assert broken is not None and broken.number == 1


@pytest.mark.parametrize("at", range(0, len(LINES[1]), 7))
def test_every_byte_counts(at: int) -> None:
    line = bytearray(LINES[1])
    line[at] ^= 1
    broken = follow([LINES[0], bytes(line), *LINES[2:]])[1]
    assert broken is not None and broken.number == 2


@pytest.mark.parametrize(
    ("lines", "number"),
    [
        ([LINES[0], *LINES[2:]], 2),
        ([LINES[0], LINES[1], LINES[1], *LINES[2:]], 3),
        ([LINES[1], LINES[0], *LINES[2:]], 2),
        ([LINES[0], b"", *LINES[1:]], 2),
        ([LINES[0], b"no json", *LINES[1:]], 2),
        ([LINES[0], *chain(1, 2, "f" * 64), *LINES[2:]], 2),
        (chain(1, 1, "f" * 64), 1),
    ],
)
def test_what_is_taken_out_put_in_or_moved_is_found(lines: list[bytes], number: int) -> None:
    broken = follow(lines)[1]
    assert broken is not None and broken.number == number


def test_a_line_forged_with_another_hash_is_none() -> None:
    link = link_of(LINES[0])
    assert isinstance(link, Link)
    assert link_of(LINES[0].replace(link.hash.encode(), b"0" * 64)) is None


@pytest.mark.parametrize(
    "line", [b"", b"{}", b"\xff", b'{"seq":1,"more":%b%b}' % (b"[" * 100_000, b"]" * 100_000)], ids=len
)
def test_what_is_no_line_is_none(line: bytes) -> None:
    assert link_of(line) is None
