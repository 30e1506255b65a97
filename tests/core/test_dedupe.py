from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topics.core import dedupe as module
from topics.core.dedupe import (
    Dedupe,
    DedupeKey,
    Hit,
    IdempotencyKey,
    ProducerKey,
    check_idempotency_key,
    check_producer_key,
    chunk_is_dead,
)
from topics.core.fence import Fence, state_of
from topics.errors import InvalidRequest, ProducerFenced, Throttled, TooManyProducers
from topics.limits import PRODUCER_RUN_SPAN_MS, PRODUCER_WINDOW_MS

WINDOW_MS = 1000
T0_MS = 100 * PRODUCER_WINDOW_MS


def reload(chunks: list[bytes], now_ms: int, window_ms: int = WINDOW_MS) -> Dedupe:
    loaded = Dedupe()
    for chunk in chunks:
        loaded.load_chunk(chunk, now_ms, window_ms)
    return loaded


def test_a_key_is_found_within_the_window_and_not_after() -> None:
    table = Dedupe()
    key = IdempotencyKey("k")
    assert table.lookup(key, T0_MS, WINDOW_MS) is None
    table.record(key, T0_MS, 7, 3)
    assert table.lookup(key, T0_MS + WINDOW_MS, WINDOW_MS) == Hit(7, 3, T0_MS)
    assert table.lookup(key, T0_MS + WINDOW_MS + 1, WINDOW_MS) is None
    assert table.lookup(key, T0_MS + WINDOW_MS + 1, WINDOW_MS + 1) == Hit(7, 3, T0_MS), "the window is the current one"
    assert table.lookup(IdempotencyKey("other"), T0_MS, WINDOW_MS) is None


def test_a_dead_key_can_be_used_again() -> None:
    table = Dedupe()
    for number in range(3):
        table.record(IdempotencyKey(f"k{number}"), T0_MS + number, number + 1, 1)
    late = T0_MS + WINDOW_MS + 1
    table.record(IdempotencyKey("k0"), late, 50, 2)
    assert table.lookup(IdempotencyKey("k0"), late, WINDOW_MS) == Hit(50, 2, late)
    assert table.lookup(IdempotencyKey("k1"), late, WINDOW_MS) == Hit(2, 1, T0_MS + 1)
    table.admit(IdempotencyKey("new"), late + 2, WINDOW_MS)
    assert len(table) == 1, "the two older ones went, the one used again stayed"
    assert table.lookup(IdempotencyKey("k0"), late + 2, WINDOW_MS) == Hit(50, 2, late)


def test_dead_entries_leave_a_few_at_a_time() -> None:
    table = Dedupe()
    for number in range(100):
        table.record(IdempotencyKey(str(number)), T0_MS, number + 1, 1)
    before = len(table)
    table.admit(IdempotencyKey("x"), T0_MS + WINDOW_MS + 1, WINDOW_MS)
    assert 1 < before - len(table) <= 8


def test_a_producer_is_found_by_sequence_in_its_epoch() -> None:
    table = Dedupe()
    table.record(ProducerKey("p", 1, 10), T0_MS, 100, 2)
    table.record(ProducerKey("p", 1, 12), T0_MS, 200, 5)
    assert table.lookup(ProducerKey("p", 1, 10), T0_MS, 0) == Hit(100, 2, T0_MS)
    assert table.lookup(ProducerKey("p", 1, 11), T0_MS, 0) is None
    assert table.lookup(ProducerKey("p", 1, 12), T0_MS + PRODUCER_WINDOW_MS, 0) == Hit(200, 5, T0_MS)
    assert table.lookup(ProducerKey("p", 1, 10), T0_MS + PRODUCER_WINDOW_MS + 1, 0) is None
    assert table.lookup(ProducerKey("p", 1, 12), T0_MS + 99 * PRODUCER_WINDOW_MS, 0) == Hit(200, 5, T0_MS)
    assert table.lookup(ProducerKey("q", 1, 10), T0_MS, 0) is None


def test_a_newer_epoch_forgets_and_fences_older_ones() -> None:
    table = Dedupe()
    table.record(ProducerKey("p", 1, 0), T0_MS, 1, 1)
    assert table.lookup(ProducerKey("p", 2, 0), T0_MS, 0) is None
    table.record(ProducerKey("p", 2, 0), T0_MS, 9, 1)
    assert table.lookup(ProducerKey("p", 2, 0), T0_MS, 0) == Hit(9, 1, T0_MS)
    with pytest.raises(ProducerFenced) as caught:
        table.lookup(ProducerKey("p", 1, 0), T0_MS, 0)
    assert caught.value.detail == {"producer_id": "p", "epoch": 1, "current_epoch": 2}
    assert len(table) == 2, "one producer, one run"


def test_replaying_an_older_epoch_changes_nothing() -> None:
    table = Dedupe()
    table.record(ProducerKey("p", 2, 0), T0_MS, 9, 1)
    table.record(ProducerKey("p", 1, 0), T0_MS, 1, 1)
    assert table.lookup(ProducerKey("p", 2, 0), T0_MS, 0) == Hit(9, 1, T0_MS)


def test_a_steady_producer_costs_the_same_whatever_it_writes() -> None:
    table = Dedupe()
    for number in range(5000):
        table.record(ProducerKey("p", 1, number), T0_MS + number, 1 + 3 * number, 3)
    assert len(table) == 2
    assert table.lookup(ProducerKey("p", 1, 4321), T0_MS + 5000, 0) == Hit(1 + 3 * 4321, 3, T0_MS + 4999)


def test_a_run_is_closed_so_that_old_writes_are_forgotten_in_time() -> None:
    table = Dedupe()
    step_ms = PRODUCER_RUN_SPAN_MS // 4
    days = 3
    writes = days * PRODUCER_WINDOW_MS // step_ms
    for number in range(writes):
        key, now_ms = ProducerKey("p", 1, number), T0_MS + number * step_ms
        assert table.lookup(key, now_ms, 0) is None
        table.admit(key, now_ms, 0)
        table.record(key, now_ms, 1 + number, 1)
    now_ms = T0_MS + (writes - 1) * step_ms
    assert len(table) <= 2 * 98 + 1
    remembered = PRODUCER_WINDOW_MS // step_ms
    assert table.lookup(ProducerKey("p", 1, writes - 1 - remembered), now_ms, 0) is not None
    assert table.lookup(ProducerKey("p", 1, writes - 1 - remembered - 5), now_ms, 0) is None


def test_a_write_of_another_size_starts_another_run() -> None:
    table = Dedupe()
    for sequence, (first_seq, count) in enumerate([(1, 1), (2, 1), (3, 4), (7, 1)]):
        table.record(ProducerKey("p", 1, sequence), T0_MS, first_seq, count)
    hits = [table.lookup(ProducerKey("p", 1, sequence), T0_MS, 0) for sequence in range(4)]
    assert [shown(hit) for hit in hits] == [(1, 1), (2, 1), (3, 4), (7, 1)]


def test_recording_a_write_again_changes_nothing() -> None:
    table = Dedupe()
    for number in range(5):
        table.record(IdempotencyKey(str(number)), T0_MS + number, 10 + number, 1)
        table.record(ProducerKey("p", 1, number), T0_MS + number, 20 + number, 1)
    table.take_chunk()
    held = len(table)
    for number in range(5):
        table.record(IdempotencyKey(str(number)), T0_MS + number, 10 + number, 1)
        table.record(ProducerKey("p", 1, number), T0_MS + number, 20 + number, 1)
    assert len(table) == held
    assert table.take_chunk() is None


def test_the_producer_that_was_quiet_longest_goes_first() -> None:
    table = Dedupe()
    table.record(ProducerKey("~busy", 1, 0), T0_MS, 1, 1)
    table.record(ProducerKey("~quiet", 1, 0), T0_MS, 2, 1)
    table.record(ProducerKey("~busy", 1, 1), T0_MS + PRODUCER_WINDOW_MS, 3, 1)
    table.admit(IdempotencyKey("x"), T0_MS + PRODUCER_WINDOW_MS + 1, WINDOW_MS)
    assert len(table) == 3, "busy and its two runs"


def test_a_late_low_sequence_is_not_dropped_with_the_dead_runs_behind_it() -> None:
    table = Dedupe()
    for number in range(20):
        table.record(ProducerKey("p", 1, 10 * number + 10), T0_MS, 100 * number + 1, 1)
    late = T0_MS + PRODUCER_WINDOW_MS + 1
    table.record(ProducerKey("p", 1, 999), late, 9000, 1)
    table.admit(ProducerKey("p", 1, 5), late, 0)
    table.record(ProducerKey("p", 1, 5), late, 9001, 1)
    for _ in range(20):
        table.admit(ProducerKey("p", 1, 1000), late, 0)
    assert table.lookup(ProducerKey("p", 1, 5), late, 0) == Hit(9001, 1, late)


def test_an_idle_producer_leaves_its_newest_epoch_and_write() -> None:
    table = Dedupe()
    for sequence in range(50):
        table.record(ProducerKey("old", 5, 3 * sequence), T0_MS, 1 + 10 * sequence, 2)
    late = T0_MS + PRODUCER_WINDOW_MS + 1
    table.admit(ProducerKey("new", 1, 0), late, 0)
    assert len(table) == 1, "a fence"
    assert table.lookup(ProducerKey("old", 5, 147), late, 0) == Hit(491, 2, T0_MS)
    assert table.lookup(ProducerKey("old", 5, 144), late, 0) is None
    assert table.lookup(ProducerKey("old", 6, 0), late, 0) is None
    with pytest.raises(ProducerFenced) as caught:
        table.lookup(ProducerKey("old", 4, 0), late, 0)
    assert caught.value.detail == {"producer_id": "old", "epoch": 4, "current_epoch": 5}


def test_a_one_off_producer_leaves_nothing_after_a_day() -> None:
    table = Dedupe()
    table.record(ProducerKey("~job", 5, 0), T0_MS, 1, 1)
    late = T0_MS + PRODUCER_WINDOW_MS + 1
    assert table.lookup(ProducerKey("~job", 1, 0), late, 0) is None
    table.admit(ProducerKey("new", 1, 0), late, 0)
    assert len(table) == 0


def test_a_busy_producer_keeps_its_newest_write_when_it_is_old() -> None:
    table = Dedupe()
    table.record(ProducerKey("p", 1, 900), T0_MS, 1, 1)
    late = T0_MS + PRODUCER_WINDOW_MS + 1
    table.record(ProducerKey("p", 1, 5), late, 2, 1)
    for _ in range(10):
        table.admit(ProducerKey("p", 1, 6), late, 0)
    assert table.lookup(ProducerKey("p", 1, 900), late, 0) == Hit(1, 1, T0_MS)


@pytest.mark.parametrize("again", [4, 5, 6])
def test_a_sequence_used_again_leaves_the_newest_write_of_its_run(again: int) -> None:
    table = Dedupe()
    for sequence in range(4, 8):
        table.record(ProducerKey("p", 1, sequence), T0_MS, 10 * sequence, 10)
    late = T0_MS + PRODUCER_WINDOW_MS + 1
    table.record(ProducerKey("p", 1, again), late, 500, 1)
    chunk = table.take_chunk()
    assert chunk is not None
    for one in (table, reload([chunk], late)):
        assert one.lookup(ProducerKey("p", 1, again), late, 0) == Hit(500, 1, late)
        assert one.lookup(ProducerKey("p", 1, 7), late, 0) == Hit(70, 10, T0_MS)


def test_a_fence_wakes_with_the_next_write_of_its_producer() -> None:
    table = Dedupe()
    table.record(ProducerKey("p", 3, 7), T0_MS, 1, 1)
    table.take_chunk()
    late = T0_MS + 5 * PRODUCER_WINDOW_MS
    table.retire(late)
    fence = table.fence("p")
    assert fence is not None and table.changed_fences == {"p"} and table.fenced() == {"p"}
    again = Dedupe()
    again.load_fence("p", fence)
    for one in (table, again):
        one.changed_fences.clear()
        one.record(ProducerKey("p", 3, 8), late, 2, 1)
        assert one.lookup(ProducerKey("p", 3, 7), late, 0) is None, "another one is the newest now"
        assert one.lookup(ProducerKey("p", 3, 8), late, 0) == Hit(2, 1, late)
        assert one.fence("p") is None and one.changed_fences == {"p"}
    one.record(ProducerKey("p", 4, 0), late, 3, 1)
    assert lookup(one, ProducerKey("p", 3, 8), late) == "fenced"


def test_a_fence_of_an_older_epoch_wakes_for_nobody() -> None:
    table = Dedupe()
    table.load_fence("p", Fence(5, 0, 1, 1, T0_MS))
    table.record(ProducerKey("p", 4, 9), T0_MS, 9, 1)
    assert table.lookup(ProducerKey("p", 5, 0), T0_MS, 0) == Hit(1, 1, T0_MS)


def test_too_many_producers_refuse_new_ones_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PRODUCERS_MAX", 2)
    table = Dedupe()
    late = T0_MS + PRODUCER_WINDOW_MS + 1
    table.record(ProducerKey("asleep", 1, 0), T0_MS, 1, 1)
    table.record(ProducerKey("~job", 1, 0), T0_MS, 3, 1)
    table.record(ProducerKey("awake", 1, 0), late, 2, 1)
    with pytest.raises(TooManyProducers) as caught:
        table.admit(ProducerKey("new", 1, 0), late, 0)
    assert caught.value.detail == {"producer_id": "new", "max": 2}
    assert "topics producer forget" in caught.value.message
    for known in ("asleep", "awake", "~new"):
        table.admit(ProducerKey(known, 1, 1), late, 0)
    table.forget("asleep", late)
    table.admit(ProducerKey("new", 1, 0), late, 0)
    table.record(ProducerKey("new", 1, 0), late, 4, 1)
    table.forget("awake", late)
    table.admit(ProducerKey("newer", 1, 0), late, 0)


def test_a_forgotten_producer_stays_forgotten_after_a_restart() -> None:
    table = Dedupe()
    table.record(ProducerKey("p", 5, 1), T0_MS, 1, 1)
    table.record(ProducerKey("q", 5, 1), T0_MS, 2, 1)
    first = table.take_chunk()
    table.forget("p", T0_MS + 7)
    second = table.take_chunk()
    table.record(ProducerKey("p", 1, 1), T0_MS + 8, 3, 1)
    third = table.take_chunk()
    assert first is not None and second is not None and third is not None
    forgotten = reload([first, second], T0_MS + 9)
    assert not forgotten.knows("p") and forgotten.knows("q")
    again = reload([first, second, third], T0_MS + 9)
    assert again.lookup(ProducerKey("p", 1, 1), T0_MS + 9, 0) == Hit(3, 1, T0_MS + 8)
    end = T0_MS + PRODUCER_WINDOW_MS
    assert (chunk_is_dead(first, end + 1, 0), chunk_is_dead(second, end + 7, 0)) == (True, False)
    assert not reload([first, second], end + 8).knows("p"), "also when both are dead and not removed yet"


def test_what_is_remembered_of_producers_can_be_listed() -> None:
    table = Dedupe()
    table.record(ProducerKey("asleep", 2, 3), T0_MS, 1, 1)
    late = T0_MS + PRODUCER_WINDOW_MS + 1
    table.retire(late)
    table.record(ProducerKey("~awake", 4, 5), late, 1, 1)
    table.record(ProducerKey("~awake", 4, 6), late + 1, 2, 1)
    assert sorted(table.producers()) == ["asleep", "~awake"]
    assert table.producer("asleep") == state_of("asleep", 2, 3, T0_MS)
    assert table.producer("~awake") == state_of("~awake", 4, 6, late + 1)
    assert table.producer("nobody") is None


def test_idle_producers_leave_a_few_at_a_time() -> None:
    table = Dedupe()
    for number in range(100):
        table.record(ProducerKey(f"~p{number}", 1, 0), T0_MS, number + 1, 1)
    before = len(table)
    late = T0_MS + PRODUCER_WINDOW_MS + 1
    table.admit(ProducerKey("new", 1, 0), late, 0)
    assert 1 < before - len(table) <= 8
    for _ in range(100):
        table.admit(ProducerKey("new", 1, 0), late, 0)
    assert len(table) == 0


def test_a_sequence_can_be_used_again_when_its_run_is_dead() -> None:
    table = Dedupe()
    for number in range(10):
        table.record(ProducerKey("p", 1, number), T0_MS, 1 + number, 1)
    late = T0_MS + PRODUCER_WINDOW_MS + 1
    table.record(ProducerKey("p", 1, 99), late, 500, 1)
    for sequence, first_seq in ((5, 600), (0, 700), (6, 601)):
        assert table.lookup(ProducerKey("p", 1, sequence), late, 0) is None
        table.record(ProducerKey("p", 1, sequence), late, first_seq, 1)
    assert table.lookup(ProducerKey("p", 1, 5), late, 0) == Hit(600, 1, late)
    assert table.lookup(ProducerKey("p", 1, 6), late, 0) == Hit(601, 1, late)
    assert table.lookup(ProducerKey("p", 1, 0), late, 0) == Hit(700, 1, late)
    assert table.lookup(ProducerKey("p", 1, 7), late, 0) is None


def test_a_table_full_of_live_entries_throttles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DEDUPE_KEYS_MAX", 3)
    table = Dedupe()
    for number in range(3):
        key = IdempotencyKey(str(number))
        table.admit(key, T0_MS, WINDOW_MS)
        table.record(key, T0_MS, number + 1, 1)
    with pytest.raises(Throttled) as caught:
        table.admit(IdempotencyKey("x"), T0_MS + WINDOW_MS, WINDOW_MS)
    assert caught.value.detail["limit"] == "dedupe_keys"
    assert len(table) == 3
    table.admit(IdempotencyKey("x"), T0_MS + WINDOW_MS + 1, WINDOW_MS)


def test_too_many_live_runs_throttle_producers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DEDUPE_RUNS_MAX", 2)
    table = Dedupe()
    for number in range(2):
        table.record(ProducerKey("p", 1, 2 * number), T0_MS, 10 * number + 1, 1)
    with pytest.raises(Throttled) as caught:
        table.admit(ProducerKey("p", 1, 9), T0_MS, WINDOW_MS)
    assert caught.value.detail["limit"] == "dedupe_runs"
    table.admit(IdempotencyKey("x"), T0_MS, WINDOW_MS)
    table.admit(ProducerKey("p", 1, 9), T0_MS + PRODUCER_WINDOW_MS + 1, WINDOW_MS)


def test_a_chunk_holds_what_changed() -> None:
    table = Dedupe()
    assert table.take_chunk() is None
    for number in range(2000):
        table.record(IdempotencyKey(f"key-{number}"), T0_MS, number + 1, 1)
    whole = table.take_chunk()
    assert whole is not None
    assert table.take_chunk() is None
    table.record(IdempotencyKey("one more"), T0_MS, 5000, 1)
    table.record(IdempotencyKey("key-7"), T0_MS, 8, 1)
    small = table.take_chunk()
    assert small is not None and len(small) < 60 < len(whole)


def test_a_steady_producers_chunk_stays_small() -> None:
    table = Dedupe()
    for number in range(1000):
        table.record(ProducerKey("p", 1, number), T0_MS, 1 + number, 1)
    chunk = table.take_chunk()
    assert chunk is not None and len(chunk) < 80


def test_a_chunk_knows_when_it_is_dead() -> None:
    table = Dedupe()
    table.record(IdempotencyKey("k"), T0_MS, 1, 1)
    keys = table.take_chunk()
    table.record(ProducerKey("p", 1, 0), T0_MS, 2, 1)
    runs = table.take_chunk()
    assert keys is not None and runs is not None
    assert not chunk_is_dead(keys, T0_MS + WINDOW_MS, WINDOW_MS)
    assert chunk_is_dead(keys, T0_MS + WINDOW_MS + 1, WINDOW_MS)
    assert not chunk_is_dead(runs, T0_MS + PRODUCER_WINDOW_MS, WINDOW_MS)
    assert chunk_is_dead(runs, T0_MS + PRODUCER_WINDOW_MS + 1, WINDOW_MS)
    assert len(reload([keys, runs], T0_MS + WINDOW_MS + 1)) == 2, "the dead key was left out"


def test_clear_forgets_everything() -> None:
    table = Dedupe()
    table.record(IdempotencyKey("k"), T0_MS, 1, 1)
    table.record(ProducerKey("p", 1, 0), T0_MS, 1, 1)
    table.clear()
    assert len(table) == 0
    assert table.take_chunk() is None


KEYS = st.one_of(
    st.builds(IdempotencyKey, st.sampled_from("abcd")),
    st.builds(ProducerKey, st.sampled_from(["p", "~q"]), st.integers(0, 2), st.integers(0, 6)),
)
LONG_PAUSE_MS = PRODUCER_WINDOW_MS // 2 + PRODUCER_RUN_SPAN_MS
"""One leaves a producer's run alive and two kill all of it: an entry never depends on the rest of its run."""
EVENTS = st.lists(st.tuples(KEYS, st.sampled_from([0, 1, 400, 700, LONG_PAUSE_MS]), st.integers(1, 2)))


def lookup(table: Dedupe, key: DedupeKey, now_ms: int) -> Hit | str | None:
    try:
        return table.lookup(key, now_ms, WINDOW_MS)
    except ProducerFenced:
        return "fenced"


class Oracle:
    """Every write ever recorded, in a list; of producers the newest epoch, and of it what is not forgotten."""

    def __init__(self) -> None:
        self.writes: list[tuple[DedupeKey, Hit]] = []

    def lookup(self, key: DedupeKey, now_ms: int) -> tuple[int, int] | str | None:
        if isinstance(key, IdempotencyKey):
            alive = [hit for other, hit in self.writes if other == key and now_ms - hit.ts <= WINDOW_MS]
            return (alive[-1].first_seq, alive[-1].count) if alive else None
        mine = [
            (other, hit)
            for other, hit in self.writes
            if isinstance(other, ProducerKey) and other.producer_id == key.producer_id
        ]
        one_off = key.producer_id.startswith("~")
        if not mine or (one_off and now_ms - max(hit.ts for _, hit in mine) > PRODUCER_WINDOW_MS):
            return None
        epoch = mine[-1][0].epoch
        if key.epoch < epoch:
            return "fenced"
        newest = max(other.sequence for other, _ in mine if other.epoch == epoch)
        kept = not one_off and key == ProducerKey(key.producer_id, epoch, newest)
        alive = [hit for other, hit in mine if other == key and (kept or now_ms - hit.ts <= PRODUCER_WINDOW_MS)]
        return (alive[-1].first_seq, alive[-1].count) if alive else None


@settings(max_examples=300)
@given(EVENTS, st.integers(1, 4), st.booleans())
def test_like_a_list_of_all_writes_also_after_chunks_and_replay(
    events: list[tuple[DedupeKey, int, int]], chunk_every: int, replay: bool
) -> None:
    table, oracle = Dedupe(), Oracle()
    chunks: list[bytes] = []
    now_ms, seq = T0_MS, 1
    recorded: list[tuple[DedupeKey, int, int, int]] = []
    for number, (key, pause_ms, count) in enumerate(events):
        now_ms += pause_ms
        expected = oracle.lookup(key, now_ms)
        assert shown(lookup(table, key, now_ms)) == expected
        if expected is None:
            table.admit(key, now_ms, WINDOW_MS)
            table.record(key, now_ms, seq, count)
            oracle.writes.append((key, Hit(seq, count, now_ms)))
            recorded.append((key, now_ms, seq, count))
            seq += count
        if number % chunk_every == 0 and (chunk := table.take_chunk()) is not None:
            chunks.append(chunk)
            recorded = recorded[-2:] if replay else []
    again = reload(chunks, now_ms)
    for key, ts, first_seq, count in recorded:
        again.record(key, ts, first_seq, count)
    for key in {key for key, _, _ in events}:
        assert shown(lookup(again, key, now_ms)) == oracle.lookup(key, now_ms)


def shown(hit: Any) -> Any:
    return (hit.first_seq, hit.count) if isinstance(hit, Hit) else hit


def test_keys_a_client_sends_are_checked() -> None:
    assert check_idempotency_key("x" * 256) == IdempotencyKey("x" * 256)
    assert check_producer_key("ä" * 64, 0, 2**64 - 1) == ProducerKey("ä" * 64, 0, 2**64 - 1)


@pytest.mark.parametrize("key", ["", "x" * 257, 7, None])
def test_bad_idempotency_keys(key: object) -> None:
    with pytest.raises(InvalidRequest, match="idempotency_key must be a string of 1 to 256 characters"):
        check_idempotency_key(key)


@pytest.mark.parametrize(
    ("field", "args"),
    [
        ("producer_id", ("", 0, 0)),
        ("producer_id", ("ä" * 65, 0, 0)),
        ("producer_id", (1, 0, 0)),
        ("epoch", ("p", -1, 0)),
        ("epoch", ("p", True, 0)),
        ("sequence", ("p", 0, 2**64)),
        ("sequence", ("p", 0, None)),
    ],
)
def test_bad_producer_keys(field: str, args: tuple[Any, Any, Any]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        check_producer_key(*args)
    assert caught.value.detail["field"] == field
