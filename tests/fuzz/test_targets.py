"""No decoder is forgotten: what reads bytes of others is among the targets."""

from __future__ import annotations

import re
from pathlib import Path

import topics.wire
from proof.fuzz import targets
from proof.fuzz.targets import TARGETS

DECODER = re.compile(r"^def (decode_\w+)\(", re.MULTILINE)
KINDS = {
    "http-request",
    "http-answer",
    "ws-frames",
    "ws-command",
    "frames",
    "wal",
    "segment",
    "snapshot",
    "cursors",
    "sql",
    "arrow-body",
    "protobuf",
}


def test_every_kind_of_bytes_has_a_target() -> None:
    assert TARGETS.keys() >= KINDS


def test_every_body_of_a_request_has_a_target() -> None:
    fuzzed = "".join(path.read_text() for path in Path(targets.__file__).parent.glob("*.py"))
    decoders = {
        (path.stem, name)
        for path in Path(topics.wire.__file__).parent.glob("*.py")
        for name in DECODER.findall(path.read_text())
    }
    assert len(decoders) > 40
    assert not {(module, name) for module, name in decoders if name not in fuzzed}
