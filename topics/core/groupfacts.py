"""What happened to a consumer group, as it is stored in the log of its partition.

Each names the group, and seqs as ranges with both ends included. They carry what was decided, so a replay decides
nothing. To change one: only add fields at its end with a default.
"""

from __future__ import annotations

import msgspec

SeqRange = tuple[int, int]


class GroupFact(msgspec.Struct, frozen=True, gc=False, tag_field="type"):
    group: str


class GroupPlaced(GroupFact, frozen=True, gc=False, tag="group_placed"):
    """The group goes on behind `cursor`: it was made, or reset."""

    cursor: int
    at_ms: int


class GroupLeased(GroupFact, frozen=True, gc=False, tag="group_leased", omit_defaults=True):
    """A range was handed out, delivered once more, and losses were told with it."""

    first_seq: int
    """0 when only losses were told."""
    last_seq: int
    due_ms: int
    """From here on it may be handed out again."""
    token: int
    consumer: str = ""
    told: list[SeqRange] = []


class GroupAcked(GroupFact, frozen=True, gc=False, tag="group_acked", omit_defaults=True):
    """Ranges are done, and losses are known."""

    at_ms: int
    ranges: list[SeqRange]
    known: list[SeqRange] = []


class GroupFreed(GroupFact, frozen=True, gc=False, tag="group_freed", omit_defaults=True):
    """Ranges are nobody's, and may be handed out from `due_ms` on; losses may be told from then on."""

    due_ms: int
    ranges: list[SeqRange]
    untold: list[SeqRange] = []


class GroupKept(GroupFact, frozen=True, gc=False, tag="group_kept", omit_defaults=True):
    """Ranges stay with their consumers until `due_ms`, and losses need not be told before."""

    due_ms: int
    ranges: list[SeqRange]
    told: list[SeqRange] = []


class GroupPaused(GroupFact, frozen=True, gc=False, tag="group_paused"):
    paused: bool


class GroupDropped(GroupFact, frozen=True, gc=False, tag="group_dropped"):
    pass


LivingGroupFact = GroupPlaced | GroupLeased | GroupAcked | GroupFreed | GroupKept | GroupPaused
"""What happens to a group that is there."""

AnyGroupFact = LivingGroupFact | GroupDropped
