"""What a watcher is told, one event after the other."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import msgspec

from topics.model import Tombstone


class Kind(StrEnum):
    RECORD = "record"
    """A batch of records."""
    TOMBSTONE = "tombstone"
    """Records that are lost."""
    CAUGHT_UP = "caught_up"
    """There is no more for now; comes each time a backlog has been worked off."""
    TOPIC_DELETED = "topic_deleted"
    """The last event of a subscription."""


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One event of one subscription, the same object for all watchers in the same place."""

    kind: Kind
    key: str
    """What the subscription is called: the topic's name, or `name#partition`."""
    cursor: int
    """Where the subscription stands once this is delivered."""
    text: bytes
    """The JSON object without its opening brace: `"topic":"jobs","records":[…],"from_seq":…}`."""
    body: bytes = b""
    """The records alone, joined by commas."""
    lost: Tombstone | None = None
    """What a tombstone tells; the text may have another reason, which is that it was before the watcher came."""


Form = Callable[[Event], bytes]
"""Turns an event into the bytes of a protocol, once for all watchers that are in the same place and speak it.

Watchers share when their forms are the same object, so a form is a function of a module and not a closure or a method.
"""
