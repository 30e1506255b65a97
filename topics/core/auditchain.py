"""The chain of the audit log: each line holds the hash of the line before it, and its own.

    {"seq":2,…,"previous":"<hash of line 1>","hash":"<SHA-256 of this line up to here>"}

A line that is changed does not fit its hash, and one that is taken out, put in or moved does not fit its neighbours.
Whoever can rewrite the whole file can make a new chain: that is found by comparing it with the copy in the log, or with
a hash that was noted elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import msgspec

from topics.jsontext import NOT_UNDERSTOOD

FIRST_PREVIOUS: Final = "0" * 64
AUDIT_TOPIC: Final = "_audit"
"""Holds a copy of each line. No name that anybody may give a topic begins like this."""
INTERNAL_TOPICS: Final = frozenset({AUDIT_TOPIC})

_END: Final = len(',"hash":""}') + 64


class Link(msgspec.Struct, frozen=True):
    """What the chain knows of a line."""

    seq: int
    previous: str
    hash: str


@dataclass(frozen=True, slots=True)
class Broken:
    """Where a chain does not hold, and why."""

    number: int
    """Which line of the text, from 1."""
    why: str


_link_decoder = msgspec.json.Decoder(Link)


def forge(fields: dict[str, Any], seq: int, previous: str) -> tuple[bytes, str]:
    """A line without its newline, and its hash."""
    text = msgspec.json.encode({"seq": seq, **fields, "previous": previous})
    digest = sha256(text).hexdigest()
    return text[:-1] + b',"hash":"' + digest.encode() + b'"}', digest


def link_of(line: bytes) -> Link | None:
    """What a line says of itself; None when it is none, or its hash is not its own."""
    try:
        link = _link_decoder.decode(line)
    except NOT_UNDERSTOOD:
        return None
    text = line[:-_END] + b"}"
    return link if sha256(text).hexdigest() == link.hash else None


def follow(lines: list[bytes], before: Link | None = None) -> tuple[Link | None, Broken | None]:
    """The last link of a chain that goes on after `before`, and where it breaks, if it does."""
    last = before
    for number, line in enumerate(lines, 1):
        link = link_of(line)
        if link is None:
            return last, Broken(number, "the line was changed: it does not fit its own hash")
        if last is not None and (link.seq, link.previous) != (last.seq + 1, last.hash):
            why = f"it does not follow line {last.seq} of the log: lines were taken out, put in or moved"
            return last, Broken(number, why)
        if last is None and link.seq == 1 and link.previous != FIRST_PREVIOUS:
            return last, Broken(number, "the first line of the log follows another one")
        last = link
    return last, None
