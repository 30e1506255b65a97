"""All decoders that are fuzzed, by name."""

from __future__ import annotations

from typing import Final

from proof.fuzz.target import Target
from proof.fuzz.targets import bodies, credentials, http, statements, stored, streams

TARGETS: Final[dict[str, Target]] = {
    target.name: target for room in (http, credentials, streams, stored, bodies, statements) for target in room.TARGETS
}
