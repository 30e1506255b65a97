"""All decoders that are fuzzed, by name."""

from __future__ import annotations

from typing import Final

from proof.fuzz.target import Target
from proof.fuzz.targets import bodies, credentials, http, images, statements, stored, streams

ROOMS: Final = (http, credentials, streams, stored, images, bodies, statements)
TARGETS: Final[dict[str, Target]] = {target.name: target for room in ROOMS for target in room.TARGETS}
