"""The values of routers that users see: what a router forwards, and how far it has come.

Field names are those of the `/v0` wire. A router copies the records of one topic into another; see docs/ROUTERS.md.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Guarantee(StrEnum):
    """How often a record may arrive; see docs/ROUTERS.md."""

    AT_LEAST_ONCE = "at_least_once"
    """Once for each router; again when a router is deleted and made anew with `backfill`."""
    EXACTLY_ONCE = "exactly_once"
    """Not again either, as long as the first copy is there."""


class RouterConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a router forwards, and how. Stored as a map by field name; a new field needs a default."""

    source: str
    """Records of this topic are copied."""
    dest: str
    """Where to: another topic, which has no other source."""
    preserve_node: bool = True
    """Copies keep their origin node, without which a node would be told of what it wrote itself."""
    preserve_tag: bool = True
    """Copies keep their tag."""
    filter: tuple[str, str, str] | None = None
    """Only records whose tag matches: `("tag", "Eq", "x")` or `("tag", "Glob", "x*")`."""
    allow_cycle: bool = False
    """Let records come back to where they came from; each goes around a bounded number of times."""
    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    """With `exactly_once`, each copy says in its meta what it is a copy of, and none comes twice."""
    create_dest: bool = True
    """Make the destination if it is missing. Acts when the router is put."""
    backfill: bool = False
    """Begin with the oldest record that is retained instead of with the next one. Acts when the router is created."""


class RouterState(msgspec.Struct, frozen=True, kw_only=True):
    """A router as it is now: its config, how far it has come, and what holds it up."""

    router: str
    config: RouterConfig
    created: bool = False
    """Whether this call created it."""
    created_ts: int
    cursors: tuple[int, ...]
    """For each partition of the source: the last seq that was forwarded or passed over."""
    lag_records: int = 0
    """Seqs of the source that readers see and the router has not come to yet."""
    lag_ms: int = 0
    """How long the oldest of them has been waiting."""
    forwarded_total: int = 0
    """Records forwarded, ever."""
    trimmed_total: int = 0
    """Records that were gone from the source before they could be forwarded; readers of the destination are told."""
    stalled: str | None = None
    """Why it does not go on just now, in words; it tries again by itself."""
    last_error: str | None = None
    """Why it last did not go on, even if it does by now."""
    last_error_ts: int | None = None


class RouterDropped(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to deleting a router; `deleted` is false when there was none."""

    router: str
    deleted: bool
