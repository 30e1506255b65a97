"""Work on dead letters that takes several steps: what the next one is about."""

from __future__ import annotations

from typing import NamedTuple

from topics.core.discard import Discarded
from topics.limits import REDRIVE_STEP
from topics.model import Redriven
from topics.wire.queue import DiscardRequest, RedriveRequest


class Step(NamedTuple):
    from_seq: int
    before_seq: int | None
    limit: int


def next_step(
    wanted: RedriveRequest | DiscardRequest,
    done: Redriven | Discarded | None,
    done_count: int,
    step_max: int = REDRIVE_STEP,
) -> Step:
    """Behind what is done, and never beyond the head that the first step saw."""
    limit = step_max if wanted.limit is None else min(step_max, wanted.limit - done_count)
    if done is None:
        return Step(wanted.from_seq, wanted.before_seq, limit)
    end = done.head_seq + 1
    return Step(done.next_from_seq, end if wanted.before_seq is None else min(end, wanted.before_seq), limit)
