"""Which partition a key goes to, for whoever speaks the wire: the same in the server and in every client."""

from __future__ import annotations

from topics.core.partition import partition_of

__all__ = ["partition_of"]
