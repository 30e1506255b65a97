"""Damage to the files of a server that died: what a disk does to bytes that were safe once.

Files of the WAL are damaged below what their own frames show to have been synced: above that, damage looks like the end
of a write that a power loss cut off, and is taken for that.
"""

from __future__ import annotations

import random
from typing import Final

from topics.storage.walfile import parse_name, read_header
from topics.storage.walscan import valid_frames
from topics.testing.fakedisk import FakeDisk

KINDS: Final = ("snapshots", "snapshots", "snapshots", "segments", "segments", "wal")
"""Directories, those more often whose damage takes more than records away."""
ZEROS_MAX: Final = 96


def damage(disk: FakeDisk, directory: str, chance: random.Random) -> list[str]:
    """Damage one file, sometimes two; what was done, empty when there is nothing that can be damaged."""
    done = (_damage_one(disk, directory, chance) for _ in range(chance.choice((1, 1, 2))))
    return [told for told in done if told]


def _damage_one(disk: FakeDisk, directory: str, chance: random.Random) -> str:
    place = f"{directory}/{chance.choice(KINDS)}"
    names = [name for name in disk.list(place) if name.endswith((".base", ".delta", ".data", ".wal"))]
    if not names:
        return ""
    path = f"{place}/{chance.choice(names)}"
    content = disk.contents()[path]
    length = _known_durable(path, content) if path.endswith(".wal") else len(content)
    if not length:
        return ""
    manner = chance.choice(("bit", "zeros", "zeros", "missing"))
    if manner == "missing" and (path.endswith(".data") or (path != f"{place}/{names[0]}" and path.endswith(".delta"))):
        disk.unlink(path)
        disk.sync_dir(place)
        return f"missing at 0 of {path}"
    offset = chance.randrange(length)
    if manner == "bit":
        changed = bytes([content[offset] ^ 1 << chance.randrange(8)])
    else:
        changed = bytes(min(chance.randint(8, ZEROS_MAX), length - offset))
    file = disk.open(path, "write")
    file.write_at(offset, [changed])
    file.sync()
    file.close()
    return f"{manner} at {offset} of {path}"


def _known_durable(path: str, content: bytes) -> int:
    parsed = parse_name(path.rpartition("/")[2])
    assert parsed is not None, "a file of the WAL has a name of one"
    view = memoryview(content)
    header, first = read_header(view, path, *parsed)
    return max((frame.mark for frame in valid_frames(view, first, header.salt)), default=0)
