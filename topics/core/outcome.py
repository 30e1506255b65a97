"""What deciding a command gives: facts to store, an answer, and when the answer may go out.

Structs and not dataclasses because some are made for each write, and making one takes a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from topics.core.block import Buffer
from topics.core.facts import MoveDecided
from topics.core.log import Log
from topics.model import Durability


class StoredFact(msgspec.Struct, frozen=True, gc=False):
    log_id: int
    appended: bool
    """An `Appended` has a frame kind of its own."""
    body: Sequence[Buffer]


class BegunMove(msgspec.Struct, frozen=True):
    """A move that was decided in `log`. Its facts must be durable before it goes on, whatever else waits for it."""

    log: Log
    fact: MoveDecided
    facts: list[StoredFact]


class Outcome(msgspec.Struct):
    """The state has changed in memory already. `reply` goes out when `facts` are as safe as they have to be."""

    reply: object
    facts: list[StoredFact] = msgspec.field(default_factory=list)
    must_sync: bool = False
    """All facts must be durable first (control facts always; data by its class)."""
    log: Log | None = None
    """The log that was written to; readers see it up to `seq` once the reply may go out."""
    seq: int = 0
    durability: Durability = Durability.DISK
    source: Log | None = None
    """Of copies: the log that has their payload, up to `source_seq`. They are as safe as it is."""
    source_seq: int = 0
    first_seq: int = 0
    """The first of their seqs, or of the gap before them."""
    moves: Sequence[BegunMove] = ()
    """What goes on after this, over several turns."""
    before_seq: int = 0
    """Of an ack: the committed seq of its group before it, which is told until the ack is safe."""
    group_created: bool = False
    """Of an ack: it was the first contact of its group."""
    follows: bool = False
    """It stores nothing and tells what was done before: that must be as safe as if it were its own."""
