"""The witness: how far a process had written its WAL, noted in memory that outlives it.

A process that dies loses nothing that it wrote, as long as the disk keeps it. The disk alone cannot tell whether it
did: one that was detached, or rolled back to a snapshot, shows a WAL that is whole and ends earlier. So each shard
notes outside of the disk (`FileSystem.memorize`) which file it writes, and after each write how long that file is:

    number     of it
    0          LAYOUT
    1          TIME     of the engine, in milliseconds since the epoch
    2 + 4 n    SALT     of the active file of shard n; salts are drawn, so no other file has it
    3 + 4 n    END      where its last frame ends
    4 + 4 n    SYNCED   how much of it a sync has covered
    5 + 4 n    NEXT     salt of the file that will be the active one, noted before that file has a name

A recovery finds the last file of a shard. If its salt is SALT and its frames reach END, or its salt is NEXT, all that
the process wrote is there: a frame is noted after it is written, and answered after it is noted. If its frames do not
reach END, writes are lost. Without a witness, or with one of another file, the recovery assumes a loss.
Each number is written by one store, so a kill leaves no half of one, and the order of the stores is part of the above.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from topics.storage.fs import FileSystem
from topics.storage.walfile import FileHeader

LAYOUT = 2
HEAD = 2
"""Numbers before those of the shards."""
TIME = 1
FIELDS = 4
SALT, END, SYNCED, NEXT = range(FIELDS)


class Testimony(Enum):
    KEPT = "everything written is there"
    LOST = "written bytes are missing"
    UNKNOWN = "nothing is known"


@dataclass(frozen=True, slots=True)
class ShardWitness:
    """What the last process noted about a shard."""

    salt: int = 0
    end: int = 0
    synced: int = 0
    next_salt: int = 0

    def about(self, header: FileHeader, end: int, sealed: bool) -> Testimony:
        """What is known of the last file of the shard, whose frames reach `end`."""
        if header.salt == self.salt and self.end:
            return Testimony.KEPT if sealed or end >= self.end else Testimony.LOST
        # Its name is there, and the first frame was not written: the shard would have noted it as its active file.
        return Testimony.KEPT if header.salt == self.next_salt != self.salt else Testimony.UNKNOWN

    def synced_upto(self, salt: int) -> int:
        """How many bytes of the file with this salt were synced, as far as that is known."""
        return self.synced if salt == self.salt and self.end else 0


@dataclass(frozen=True, slots=True)
class Witness:
    """What the last process noted; nothing when it is gone."""

    shards: tuple[ShardWitness, ...] = ()
    time_ms: int = 0

    def shard(self, number: int) -> ShardWitness:
        return self.shards[number] if number < len(self.shards) else ShardWitness()


def recall(fs: FileSystem, directory: str) -> Witness:
    numbers = fs.recall(directory)
    if len(numbers) < HEAD or numbers[0] != LAYOUT:
        return Witness()
    starts = range(HEAD, len(numbers) - FIELDS + 1, FIELDS)
    return Witness(tuple(ShardWitness(*numbers[at : at + FIELDS]) for at in starts), numbers[TIME])


class Notes:
    """The numbers of all shards, for a process to write."""

    def __init__(self, fs: FileSystem, directory: str, shards: int) -> None:
        self._fs = fs
        self._directory = directory
        count = HEAD + shards * FIELDS
        # Without a place for them they are kept in vain, which is what the next recovery will find.
        self._numbers = fs.memorize(directory, count) or memoryview(bytearray(8 * count)).cast("Q")
        self._numbers[0] = LAYOUT

    def of_shard(self, shard: int) -> memoryview:
        """The numbers of one shard, at the places `SALT` to `NEXT`."""
        return self._numbers[HEAD + shard * FIELDS : HEAD + (shard + 1) * FIELDS]

    def note_time(self, now_ms: int) -> None:
        """Keep the time of the engine, which is not to go back over a restart."""
        self._numbers[TIME] = now_ms

    def forget(self) -> None:
        """After a clean stop, which needs no witness."""
        self._fs.forget(self._directory)


def begin_file(numbers: memoryview, salt: int, end: int) -> None:
    """Note that the file with this salt is the active one from here on. A kill in between proves as much as before."""
    numbers[END] = 0
    numbers[SYNCED] = 0
    numbers[SALT] = salt
    numbers[END] = numbers[SYNCED] = end
