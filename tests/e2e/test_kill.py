"""A real process under mixed load, killed with SIGKILL again and again: what it had acked is there, once, and right.

Writes, deletes and erasures, jobs, messages by priority, a consumer group, a router and batches over two topics go on
at once, in process and over HTTP; and so do heaps over gRPC, by calls and on a stream, a WebSocket, and a group in SQL.
What each process left is copied, and the copy is opened and compared with the model, so that the next process starts
from the very state in which the last one died; some are killed before they have recovered.
"""

from __future__ import annotations

import random
from os import environ
from pathlib import Path
from shutil import rmtree

import pytest

from proof.results import RESULTS, save
from proof.soak.progress import tell
from proof.tree import tree_hash
from tests.e2e import campaign
from tests.e2e.campaign import FAR, NEAR, Campaign

MANY_CYCLES = 200
KEPT = RESULTS / "kill"
"""Where a campaign is that is not over; a failed one stays, under another name."""


def test_what_was_acked_outlives_a_kill(tmp_path: Path) -> None:
    ours = Campaign(tmp_path, seed=1)
    while ours.cycles < 10:
        ours.next()
    ours.finish()


def test_a_campaign_that_is_broken_off_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "ACKS_MAX", 60)
    ours = Campaign(tmp_path, seed=2)
    ours.next()
    acked = ours.acked
    with monkeypatch.context() as broken_off:
        broken_off.setattr(Campaign, "_check", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            ours.next()
    again = Campaign(tmp_path, seed=2)
    assert (again.cycles, again.acked) == (1, acked)
    again.next()
    assert again.cycles == 2
    with pytest.raises(AssertionError, match="seed 2"):
        Campaign(tmp_path, seed=3)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.soak
def test_what_was_acked_outlives_many_kills() -> None:
    tree, cycles = tree_hash(), int(environ.get("KILL_CYCLES", MANY_CYCLES))
    directory = _place(tree)
    directory.mkdir(parents=True, exist_ok=True)
    ours = Campaign(directory, int(directory.name.partition("-")[2]))
    failures = 1
    try:
        while ours.cycles < cycles:
            tell(ours.cycles, cycles)
            ours.next()
        ours.finish()
        failures = 0
    except Exception:
        directory.rename(KEPT / f"failed-{directory.name}")
        raise
    finally:
        counts = {"seed": ours.seed, "lanes": [*NEAR, *FAR], "cycles": ours.cycles, "acked": ours.acked}
        command = f"KILL_SEED={ours.seed} KILL_CYCLES={cycles} make soak ONLY=kill"
        save("kill", command, {"tree": tree, **counts, "failures": failures})
    rmtree(directory)


def _place(tree: str) -> Path:
    """That of the seed that is asked for, or else of a campaign of this tree that was broken off, or of a new one."""
    seed = environ.get("KILL_SEED")
    begun = [] if seed else sorted(KEPT.glob(f"{tree}-*/state.json"))
    if begun:
        return begun[0].parent
    return KEPT / f"{tree}-{seed or random.SystemRandom().randrange(2**32)}"
