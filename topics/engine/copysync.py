"""How far copies are durable: their fact is in one shard, and their payload may be in others.

A copy survives a power loss when its fact and all that leads to its payload is synced: its source may have a copy, too.
A log that has copies of what is not synced yet is durable up to the first of them at most, however far its own
shard has come.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class _Copies:
    first_seq: int
    shards: set[int]
    """Those that are not synced yet."""


@dataclass(slots=True)
class _Unsure:
    own_seq: int
    """How far the log's own shard is synced."""
    copies: dict[int, _Copies] = field(default_factory=dict)
    """By the last seq of each."""

    def upto(self) -> int:
        firsts = [copies.first_seq for copies in self.copies.values()]
        return min(self.own_seq, min(firsts) - 1) if firsts else self.own_seq


class CopySync:
    def __init__(self) -> None:
        self.logs: dict[int, _Unsure] = {}
        """Those that have copies which are not durable yet."""

    def __len__(self) -> int:
        """How many logs have copies that are not durable yet."""
        return len(self.logs)

    def shards_of(self, log_id: int, upto_seq: int) -> set[int]:
        """The shards, beside its own, that have to be synced before a log is durable up to a seq."""
        unsure = self.logs.get(log_id)
        if unsure is None:
            return set()
        return {shard for copies in unsure.copies.values() if copies.first_seq <= upto_seq for shard in copies.shards}

    def wait(self, log_id: int, first_seq: int, last_seq: int, synced_seq: int, shards: set[int]) -> None:
        """These copies are not durable before `source_synced` was said of each of these shards."""
        unsure = self.logs.setdefault(log_id, _Unsure(synced_seq))
        unsure.copies[last_seq] = _Copies(first_seq, shards)

    def source_synced(self, log_id: int, last_seq: int, shard: int) -> int:
        """A shard that copies were waiting for is synced; how far their log is durable now."""
        unsure = self.logs.get(log_id)
        if unsure is None:
            return 0
        copies = unsure.copies.get(last_seq)
        if copies is not None:
            copies.shards.discard(shard)
            if not copies.shards:
                del unsure.copies[last_seq]
        if not unsure.copies:
            del self.logs[log_id]
        return unsure.upto()

    def own_synced(self, log_id: int, seq: int) -> int:
        """A log's own shard is synced up to `seq`; how far the log is durable."""
        unsure = self.logs.get(log_id)
        if unsure is None:
            return seq
        unsure.own_seq = max(unsure.own_seq, seq)
        return unsure.upto()
