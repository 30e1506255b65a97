"""All decoders that are fuzzed, by name."""

from __future__ import annotations

from typing import Final

from proof.fuzz.target import Target
from proof.fuzz.targets import bodies, http, statements, stored, streams

TARGETS: Final[dict[str, Target]] = {
    target.name: target
    for target in (*http.TARGETS, *streams.TARGETS, *stored.TARGETS, *bodies.TARGETS, *statements.TARGETS)
}
