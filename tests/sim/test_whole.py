"""The whole server, three hundred lives: every client, every feature, everything that goes wrong, from one seed each.

A seed that breaks a promise prints how to see it again. `make soak` runs twenty thousand of them, and goes on where it
was when it is run again.
"""

from __future__ import annotations

import pytest

from topics.testing.sim.runner import run_seed
from topics.testing.sim.tally import Tally, replay_command
from topics.testing.sim.verdict import Result

SEEDS = 300
STRATA = 6


OPERATIONS = {
    "write", "read", "delete", "claim", "ack", "nack", "extend", "complete", "redrive", "enqueue", "replay", "consume",
    "group_ack", "group_nack", "group_extend", "stage", "publish", "abort", "watch", "heard", "backup", "snapshot",
    "drop", "by WebSocket", "by statement", "by Arrow", "sockets",
}  # fmt: skip
FAULTS = {
    "kill", "power loss", "crash at a file call", "clean stop", "failing sync", "failing write", "torn write",
    "full disk", "slow disk", "clock jump forward", "clock jump back", "weather", "cut connection", "repeated request",
    "late request", "cut stream", "cut socket", "slow watcher", "vanishing watcher",
}  # fmt: skip


def promises_kept(seed: int) -> Result:
    result = run_seed(seed)
    assert not result.violations, "\n".join([*result.violations[:5], f"see it again: {replay_command(seed)}"])
    return result


@pytest.mark.parametrize("stratum", range(STRATA))
def test_every_promise_is_kept_whatever_goes_wrong(stratum: int) -> None:
    tally = Tally(1)
    for seed in range(1 + stratum, 1 + SEEDS, STRATA):
        tally.add(promises_kept(seed))
    assert tally.operations.keys() >= OPERATIONS and tally.faults.keys() >= FAULTS, "otherwise this shows less"
    assert tally.histories > tally.seeds, "backups were restored"
