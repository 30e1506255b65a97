"""Mutants of the time that the engine goes by: jumps that are believed, spans that are stretched, news that is lost."""

from __future__ import annotations

from proof.mutants.mutant import Mutant

_STEADY = "topics/steadyclock.py"
_TESTS = "tests/test_steadyclock.py::"
_LIVENESS = "tests/testing/sim/test_liveness.py::"

TIME = (
    Mutant(
        "time-jump-believed-at-once",
        "a jump of the wall clock that is taken back leaves no trace",
        _STEADY,
        "        if ticks_ns >= self._doubt_ns:\n",
        "        if True:\n",
        (_TESTS + "test_jump_that_is_taken_back_leaves_no_trace",),
    ),
    Mutant(
        "time-small-changes-believed-at-once",
        "small changes of the wall clock that make a large gap are doubted",
        _STEADY,
        " or abs(ahead_ms) > CLOCK_STEP_MS >= abs(self.ahead_ms):\n",
        ":\n",
        (_TESTS + "test_small_changes_that_make_a_large_gap_are_doubted_too",),
    ),
    Mutant(
        "time-follows-the-wall-clock",
        "deadlines follow the steady clock while the process lives",
        _STEADY,
        "        now_ms = self._zero_ms + (ticks_ns - self._zero_ns) // NS_PER_MS\n",
        "        now_ms = self._wall_ms()\n",
        (_LIVENESS + "test_clock_that_jumps_holds_nothing_up",),
    ),
    Mutant(
        "time-goes-back",
        "time never goes back",
        _STEADY,
        "        if now_ms > self.latest_ms:\n            self.latest_ms = now_ms\n",
        "        self.latest_ms = now_ms\n",
        (
            _TESTS + "test_small_gap_is_closed_by_running_faster_or_slower",
            _TESTS + "test_jump_back_that_lasts_makes_time_run_slower_and_never_back",
        ),
    ),
    Mutant(
        "time-stands-still-to-be-caught-up-with",
        "time that is ahead runs slower by a fifth, and not at a stand",
        _STEADY,
        "    most_ms = elapsed_ms // CLOCK_SLEW_PARTS\n",
        "    most_ms = elapsed_ms\n",
        (_TESTS + "test_stored_time_that_is_ahead_is_kept_and_caught_up_with",),
    ),
    Mutant(
        "time-never-believes-again",
        "a wall clock that keeps to its new time is believed",
        _STEADY,
        "self._doubt_ns = ticks_ns + CLOCK_DOUBT_MS * NS_PER_MS if",
        "self._doubt_ns = ticks_ns + CLOCK_DOUBT_MS * NS_PER_MS * 1000 if",
        (_TESTS + "test_jump_ahead_is_believed_when_it_lasts",),
    ),
    Mutant(
        "time-suspended-not-counted",
        "time in which the machine was suspended counts at once",
        _STEADY,
        "            self._zero_ms += slept_ms\n",
        "            self._zero_ms += 0\n",
        (_TESTS + "test_suspended_time_counts_at_once",),
    ),
    Mutant(
        "time-stored-not-reached",
        "time does not go back over a restart",
        _STEADY,
        "            self._zero_ms += missing_ms\n",
        "            self._zero_ms += 0\n",
        (_TESTS + "test_stored_time_that_is_ahead_is_kept_and_caught_up_with",),
    ),
    Mutant(
        "time-noted-not-reached",
        "a lease ends in its time when the clock went back before a restart",
        "topics/engine/recovery.py",
        "        self._now_ms = max(self._now_ms, recovery.noted_ms)\n",
        "",
        ("tests/engine/test_recovery.py::test_lease_ends_in_its_time_when_the_clock_went_back_before_a_restart",),
    ),
    Mutant(
        "time-jump-not-logged",
        "a line in the log says that the wall clock jumped",
        "topics/server/observing.py",
        "        if engine.time.jumps > self._jumps_logged:\n",
        "        if engine.time.jumps > self._jumps_logged + 1:\n",
        ("tests/server/routes/test_observing.py::test_clock_that_jumped_is_an_alert_a_metric_and_a_log_line",),
    ),
)
