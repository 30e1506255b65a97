"""How far the images of a damaged snapshot can be relied on.

An entry whose checksum is right is what was written. Whether it is the newest of its key is another question: the entry
that cannot be read may have been a newer one. It was not when the key was read in the damaged file itself, which has
each key once, or in a later one; and the bytes of a lost entry tell what kind of key it had.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from topics.storage.commitlog import ALL_POSITIONS

_FORGETTABLE = re.compile(rb"[dh]/\d+/\d+|[bf]/\d+/.+", re.DOTALL)
"""Keys of images that nothing hangs on: answers to repeated writes and publishes, and in what order messages wait."""
_LOG_KEY = re.compile(rb"l/(\d+)")
_ALL_KINDS: Final = frozenset((b"l", b"t", b"s", b"r", b"m"))
_KINDS: Final = (
    (_LOG_KEY, frozenset((b"l",))),
    (re.compile(rb"m"), frozenset((b"m",))),
    (re.compile(rb"[sr]/.+", re.DOTALL), frozenset((b"s", b"r"))),
    (re.compile(rb"[tapuki]/.+", re.DOTALL), frozenset((b"t",))),
    (re.compile(rb".*", re.DOTALL), _ALL_KINDS),
)
"""What a lost key may have been. One flipped bit turns some kinds of names into each other."""


class Trust:
    def __init__(self) -> None:
        self.whole = True
        """Whether no image is lost on which something hangs: then what the snapshot does not name does not exist."""
        self.sure: set[bytes] | None = None
        """The keys of which the newest entry was read, removals included; None for all."""
        self.lost_batches = False
        """Whether the answer to a publish may be lost."""
        self._newest_lost = False
        self._lost: set[bytes] = set()
        """Kinds of entries that are lost: the first letters of their keys."""

    def lose(self, keys: tuple[bytes, ...] | None) -> None:
        """Some images are lost, or older than they should be: those of these keys, any when they cannot be told.

        The key is read from damaged bytes. It tells what kind of entry is lost, as no flipped bit makes a log's key of
        one that is not; which topic or log it names is not relied on.
        """
        for key in keys if keys is not None else (b"",):
            self.lost_batches = self.lost_batches or not key or key.startswith((b"b/", b"f/"))
            if not _FORGETTABLE.fullmatch(key):
                self.whole = False
                self._lost |= next(kinds for form, kinds in _KINDS if form.fullmatch(key))

    def lose_newest(self) -> None:
        """A whole snapshot is missing behind those that there are."""
        self.whole = False
        self._lost = set(_ALL_KINDS)
        self._newest_lost = self.lost_batches = True

    def is_newest(self, key: bytes) -> bool:
        """Whether the image of a key, or that there is none, is the newest that there was."""
        if self.whole or key[:1] not in self._lost:
            return True
        return not self._newest_lost and self.sure is not None and key in self.sure

    @property
    def knows_topics(self) -> bool:
        """Whether every topic that exists is known."""
        return b"t" not in self._lost

    @property
    def knows_owners(self) -> bool:
        """Whether every topic and every stage is: then a log of neither is gone."""
        return self._lost.isdisjoint((b"t", b"s"))

    def gone_logs(self, state: Mapping[bytes, bytes]) -> dict[int, int]:
        """Logs whose end an undamaged entry tells, with a position behind all that they ever had."""
        if self._newest_lost:
            return {}
        logs = (_LOG_KEY.fullmatch(key) for key in (self.sure or set()) - state.keys())
        return {int(log[1]): ALL_POSITIONS for log in logs if log}
