"""What a TTL and the caps take, beside a model that looks at one record after the other."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.rig import T0_MS
from topics.core import live
from topics.core.facts import ArchiveDropped, Archived, Deleted
from topics.core.log import Log
from topics.core.records import Records
from topics.core.run import MemoryRun
from topics.model import Reason, TopicConfig

CONFIGS = st.builds(
    TopicConfig,
    ttl_ms=st.sampled_from([0, 5]),
    cap_records=st.sampled_from([0, 3]),
    cap_bytes=st.sampled_from([0, 40]),
    protect_unarchived=st.booleans(),
    protect_groups=st.sampled_from([(), ("g",), ("g", "h")]),
    protect_max_bytes=st.sampled_from([1, 60, 10**6]),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 5), st.integers(1, 30)),
        st.tuples(st.just("wait"), st.integers(1, 7), st.just(0)),
        st.tuples(st.just("archived"), st.integers(0, 12), st.just(0)),
        st.tuples(st.just("dropped"), st.just(0), st.just(0)),
        st.tuples(st.just("acked"), st.sampled_from([0, 1]), st.integers(0, 12)),
        st.tuples(st.just("delete"), st.integers(0, 12), st.just(0)),
    ),
    max_size=25,
)


@dataclass
class Model:
    """Records one by one, oldest first: seq, time and size."""

    config: TopicConfig
    records: list[tuple[int, int, int]] = field(default_factory=list)
    next_seq: int = 1
    archived: int | None = None
    acked: dict[str, int] = field(default_factory=dict)
    overrun_count: int = 0

    def needed(self, seq: int) -> bool:
        if self.config.protect_unarchived and seq > (self.archived or 0):
            return True
        return any(seq >= self.acked.get(name, 0) for name in self.config.protect_groups)

    def held_bytes(self) -> int:
        return sum(size for _, _, size in self.records)

    def take_oldest(self) -> bool:
        needed = self.needed(self.records[0][0])
        if needed and self.held_bytes() <= self.config.protect_max_bytes:
            return False
        self.overrun_count += needed
        del self.records[0]
        return True

    def expire(self, now_ms: int) -> None:
        while self.config.ttl_ms and self.records and self.records[0][1] < now_ms - self.config.ttl_ms:
            if not self.take_oldest():
                return

    def evict(self) -> None:
        config = self.config
        while (0 < config.cap_records < len(self.records)) or (0 < config.cap_bytes < self.held_bytes()):
            if not self.take_oldest():
                return


@given(CONFIGS, STEPS)
def test_what_is_left_is_what_nobody_needs_no_more(config: TopicConfig, steps: list[tuple[str, int, int]]) -> None:
    log, model, now_ms = Log(7, "t", 0, 1), Model(config), T0_MS
    for kind, first, second in steps:
        if kind == "write":
            records = Records.of([{"data": "x" * second}] * first)
            log.observe(config, now_ms)
            log.append(records.encode(log.next_seq, now_ms), config)
            model.expire(now_ms)
            size = records.payload_bytes // first
            model.records += [(model.next_seq + at, now_ms, size) for at in range(first)]
            model.next_seq += first
            model.evict()
        elif kind == "wait":
            now_ms += first
            log.observe(config, now_ms)
            model.expire(now_ms)
        elif kind == "archived":
            log.apply(Archived("lake", first, "", now_ms))
            model.archived = first
        elif kind == "dropped":
            log.apply(ArchiveDropped("lake"))
            model.archived = None
        elif kind == "acked":
            name = "gh"[first]
            log.holds.groups[name] = model.acked[name] = second
        else:
            bound = min(first, log.next_seq)
            log.apply_deleted(Deleted(bound))
            model.records = [record for record in model.records if record[0] >= bound]
        assert list(live.live_seqs(log, 0, log.head_seq)) == [seq for seq, _, _ in model.records]
        assert (log.count, log.bytes) == (len(model.records), model.held_bytes())
        assert (log.holds.overrun_count if log.has_holders else 0) == model.overrun_count
        assert log.totals.overrun_count == model.overrun_count


def test_held_records_are_not_looked_through_with_every_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of runs are over the cap and expired: a write costs what it takes, not what is held."""
    config = TopicConfig(ttl_ms=5, cap_records=3, protect_unarchived=True, protect_max_bytes=100_000)
    log = Log(7, "t", 0, 1)
    looked = 0

    def counted(run: MemoryRun, *arguments: object) -> object:
        nonlocal looked
        looked += 1
        return searched[run.__class__](run, *arguments)

    searched = {MemoryRun: MemoryRun.seq_after_ts}
    monkeypatch.setattr(MemoryRun, "seq_after_ts", counted)
    for at in range(400):
        log.freeze_tail()
        log.observe(config, T0_MS + 10 * at)
        log.append(Records.of([{"data": "x" * 498}]).encode(log.next_seq, T0_MS + 10 * at), config)
    assert log.count == 200 and log.holds.overrun_count == 200
    assert looked < 3 * 400, "each write looks at a few runs"


def test_what_holders_lose_is_a_loss_like_any_other() -> None:
    config = TopicConfig(cap_records=2, protect_unarchived=True, protect_max_bytes=30)
    log = Log(7, "t", 0, 1)
    for _ in range(5):
        log.append(Records.of([{"data": "x" * 8}]).encode(log.next_seq, T0_MS), config)
    assert (log.count, log.low, log.evict_floor, log.lost) == (3, 3, 3, {Reason.CAP: 2})
    assert log.holds.overrun_count == 2
    assert log.totals.overrun_topic == "t"
