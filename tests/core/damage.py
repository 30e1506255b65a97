"""A log whose stored bytes have rotted."""

from __future__ import annotations

from topics.core.block import Block
from topics.core.log import Log
from topics.core.run import Marks, MemoryRun
from topics.errors import Damaged


class Unreadable(MemoryRun):
    """A run in a segment of which nothing can be read but its marks."""

    def block_at(self, seq: int) -> tuple[Block, Marks | None]:
        raise Damaged("checksum")

    def seq_after_ts(self, ts: int) -> int:
        raise Damaged("checksum")

    def live_from(self, seq: int) -> tuple[int, int]:
        raise Damaged("checksum")

    def seq_at_live(self, skip_count: int, skip_bytes: int, seq: int) -> tuple[int, int, int]:
        raise Damaged("checksum")


def spoil(log: Log) -> list[MemoryRun]:
    """Nothing that is in the log by now can be read any more; the sound runs, to be put back."""
    log.freeze_tail()
    sound = [run for run in log.runs if isinstance(run, MemoryRun)]
    assert len(sound) == len(log.runs) and all(run.marks is None for run in sound)
    log.runs = [Unreadable(run.block, None, run.live_bytes) for run in sound]
    return sound


def mend(log: Log, sound: list[MemoryRun]) -> None:
    log.runs[: len(sound)] = sound
