"""A job as a worker gets it: the stored text of its record with the lease spliced in behind the seq.

Records stand in a block as they are told to workers, one behind the other with commas between. So the text of jobs that
follow on each other, as those that were never handed out mostly do, is one piece of the block, cut where the leases go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Final

import msgspec

from topics.core.block import Block
from topics.core.leases import LEASE_ID_PREFIX
from topics.core.log import Log
from topics.core.tail import Tail

_SEQ: Final = b'{"$seq":'
_LEASE: Final = b'"lease_id":"' + LEASE_ID_PREFIX.encode() + b'%b","deadline":%d,"deliveries":%b,'


class JobTexts:
    """The texts of jobs of one log. What is asked for is in the log."""

    __slots__ = ("_log", "_part")

    def __init__(self, log: Log) -> None:
        self._log = log
        self._part: Tail | Block | None = None

    def fitting_count(self, seqs: Sequence[int], bytes_max: int) -> int:
        """How many of the first ones take so many bytes together; one always does. Raises `Damaged`, too."""
        if not seqs:
            return 0
        part = self._part_of(seqs[0])
        if len(part.text) <= bytes_max and part.first_seq <= min(seqs) and max(seqs) <= part.last_seq:
            return len(seqs)
        left_bytes = bytes_max
        for count, seq in enumerate(seqs):
            begin, end = self._part_of(seq).ends_between(seq, seq)
            left_bytes -= end - begin
            if count and left_bytes < 0:
                return count
        return len(seqs)

    def pieces(self, seqs: Sequence[int]) -> list[bytes]:
        """The text of these jobs, which ascend, cut behind the seq of each: one piece more than there are jobs. A `%`
        stands there twice, as in a format. Raises `Damaged` when one cannot be read."""
        found: list[bytes] = []
        for part, first, last in self._stretches(seqs):
            pieces = _cut(part, first, last)
            if found:
                pieces[0] = b"%b,%b" % (found.pop(), pieces[0])
                found += pieces
            else:
                found = pieces
        return found

    def divided(self, dealt: Sequence[Sequence[int]]) -> list[list[bytes]]:
        """`pieces` of each part. Parts that follow on each other, as they mostly do, are cut out together."""
        first = end = dealt[0][0] if dealt[0] else 0
        for part in dealt:
            if part != list(range(end, end + len(part))):
                return [self.pieces(part) for part in dealt]
            end += len(part)
        left = self.pieces(range(first, end))
        found = []
        for part in dealt:
            count = len(part)
            own = left[: count + 1]
            del left[:count]
            if part and len(left) > 1:
                # What stands between two parts: the end of a job, a comma, and the seq of the next one.
                left[0] = b"%b%d," % (_SEQ, part[-1] + 1)
                own[-1] = own[-1][: -len(left[0]) - 1]
            found.append(own)
        return found

    def _stretches(self, seqs: Sequence[int]) -> Iterator[tuple[Tail | Block, int, int]]:
        """The parts of the log that the seqs are in, each with those that follow on each other there."""
        at, count = 0, len(seqs)
        if count and seqs[-1] - seqs[0] == count - 1 and seqs[-1] <= (part := self._part_of(seqs[0])).last_seq:
            # They ascend, each once, so none is missing.
            yield part, seqs[0], seqs[-1]
            return
        while at < count:
            first = last = seqs[at]
            part = self._part_of(first)
            at += 1
            while at < count and seqs[at] == last + 1 and last < part.last_seq:
                last += 1
                at += 1
            yield part, first, last

    def _part_of(self, seq: int) -> Tail | Block:
        part = self._part
        if part is None or not part.first_seq <= seq <= part.last_seq:
            run = self._log.run_at(seq)
            assert run is not None, f"{seq} is not in the log"
            part = self._part = run if isinstance(run, Tail) else run.block_at(seq)[0]
        return part


def _cut(part: Tail | Block, first: int, last: int) -> list[bytes]:
    """The texts of all from `first` to `last`, which are in this part, cut behind the seq of each."""
    ends = part.ends_between(first, last)
    # Records are separated by a comma, so each begins one behind where the last one ended.
    begin = ends[0] + 1
    text = bytes(part.text[begin : ends[-1]])
    digits = len(b"%d" % first)
    if digits == len(b"%d" % last):
        skip = len(_SEQ) + digits + len(b",") + 1 - begin
        cuts = [0, *[end + skip for end in ends]]
        cuts[-1] = len(text)
    else:
        skip = len(_SEQ) + len(b",") + 1 - begin
        cuts = [0, *[end + skip + len(b"%d" % seq) for seq, end in enumerate(ends[:-1], first)], len(text)]
    pieces = [text[start:end] for start, end in pairwise(cuts)]
    if b"%" in text:
        pieces = [piece.replace(b"%", b"%%") for piece in pieces]
    if part.has_tags:
        for place, seq in enumerate(range(first, last + 1), 1):
            if tag := part.tag_of(seq):
                told = msgspec.json.encode(tag.decode()).replace(b"%", b"%%")
                pieces[place] = b'"$tag":%b,%b' % (told, pieces[place])
    return pieces


def jobs_text(pieces: Sequence[bytes], token: int, deadline_ms: int, deliveries: Sequence[int]) -> bytes:
    """`{"$seq":7,"lease_id":"lease_1f","deadline":…,"deliveries":1,…},{"$seq":8,…`: the pieces, with leases between."""
    tokens = range(token, token + len(deliveries))
    if max(deliveries) == 1:
        lease = _LEASE % (b"%x", deadline_ms, b"1")
        return lease.join(pieces) % tuple(tokens)
    lease = _LEASE % (b"%x", deadline_ms, b"%d")
    return lease.join(pieces) % tuple(chain.from_iterable(zip(tokens, deliveries, strict=True)))
