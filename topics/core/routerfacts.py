"""What happened to routers, as it is stored; see docs/ROUTERS.md.

`RouterPut` and `RouterGone` are facts of the meta log: which routers there are. `Forwarded` and `CopiesLost` are facts
of a destination's log: what came into it by a router.
"""

from __future__ import annotations

import msgspec

from topics.model import Reason
from topics.routermodel import RouterConfig


class Forwarded(msgspec.Struct, frozen=True, tag="forwarded", omit_defaults=True):
    """A router came from one seq of its source to another: these of the records between are in this log, as copies.

    The payload is in the source's log, unless that stores none (`records`). See `core/forward.py`.
    """

    router: int
    """The number of the router."""
    source_log_id: int
    cursor: int
    """The last seq of the source that was forwarded or passed over."""
    from_seq: int = 0
    """The seq of the source that the first bit of `chosen` is about."""
    chosen: bytes = b""
    """One bit for each seq from `from_seq` on, highest bit first: whether it was copied. Empty: all up to `cursor`."""
    first_seq: int = 0
    """What the first copy got here."""
    count: int = 0
    ts: int = 0
    trimmed: int = 0
    """So many seqs before `first_seq` stand for records that the source had lost."""
    drops_node: bool = False
    drops_tag: bool = False
    stamp: str = ""
    """What stands before the seq in the stamp of each copy; empty for none."""
    hops: int = 0
    """How many times the copies were forwarded along their ring of topics."""
    ceiling: int = 0
    floors: tuple[int, int, dict[Reason, int]] | None = None
    """`low`, `evict_floor` and `lost`, when these copies moved them."""
    records: bytes = b""
    """The copies, as a block with their seqs."""


class CopiesLost(msgspec.Struct, frozen=True, tag="copies_lost"):
    """Copies whose payload did not survive, found at a recovery: they are not to be looked for again."""

    first_seq: int
    last_seq: int


class RouterPut(msgspec.Struct, frozen=True, tag="router_put"):
    """There is such a router, or it changed: then it has its old number."""

    router: str
    number: int
    config: RouterConfig
    created_ms: int
    starts: tuple[int, ...]
    """For each partition of the source: the last seq that is not forwarded."""


class RouterGone(msgspec.Struct, frozen=True, tag="router_gone"):
    """A router was deleted. One whose source or destination is deleted goes with it, without a fact of its own."""

    router: str


RouteFact = Forwarded | CopiesLost
"""Facts of a log that only another log makes whole: `core/derive.py` replays them."""
RouterFact = RouterPut | RouterGone
