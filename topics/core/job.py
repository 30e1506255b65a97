"""A job as a worker gets it: the stored text of its record with the lease spliced in behind the seq.

Jobs that follow on each other in a block, as those that were never handed out mostly do, are cut out of it together.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import msgspec

from topics.core.block import Block
from topics.core.leases import LEASE_ID_PREFIX
from topics.core.log import Log
from topics.core.tail import Tail

_SEQ: Final = b'{"$seq":'
_SEQ_BYTES: Final = len(_SEQ) + 20
"""What the seq takes, at most."""
_JOB: Final = _SEQ + b'%b,"lease_id":"' + LEASE_ID_PREFIX.encode() + b'%b","deadline":%d,"deliveries":%b,%b'


def stored_texts(log: Log, seqs: Sequence[int], bytes_max: int) -> list[bytes]:
    """What stands behind the seq in the text of records that are in the log, their tags included: of as many of the
    first ones as `bytes_max` allows, and one at least. Raises `Damaged` when one cannot be read."""
    found: list[bytes] = []
    left_bytes = bytes_max
    at = 0
    while at < len(seqs) and (left_bytes > 0 or not found):
        first = seqs[at]
        run = log.run_at(first)
        assert run is not None, f"{first} is not in the log"
        part: Tail | Block = run if isinstance(run, Tail) else run.block_at(first)[0]
        end = at + 1
        while end < len(seqs) and seqs[end] == seqs[end - 1] + 1 and seqs[end] <= part.last_seq:
            end += 1
        texts = _cut(part, first, seqs[end - 1])
        left_bytes -= sum(map(len, texts)) + len(texts) * _SEQ_BYTES
        if left_bytes < 0:
            # Too much: leave the last ones out, but never all of them.
            while texts and left_bytes < 0 and (found or len(texts) > 1):
                left_bytes += len(texts.pop()) + _SEQ_BYTES
            return found + texts
        found += texts
        at = end
    return found


def _cut(part: Tail | Block, first: int, last: int) -> list[bytes]:
    """The texts of all from `first` to `last`, which are in this part."""
    # Records are separated by a comma, so each begins one behind where the last one ended.
    ends = part.ends_between(first, last)
    text = part.text
    if len(b"%d" % first) == len(b"%d" % last):
        skip = 1 + len(_SEQ) + len(b"%d," % first)
        texts = [bytes(text[end_before + skip : end]) for end_before, end in pairwise(ends)]
    else:
        texts = [
            bytes(text[end_before + 1 + len(_SEQ) + len(b"%d," % seq) : end])
            for seq, (end_before, end) in enumerate(pairwise(ends), first)
        ]
    if part.has_tags:
        texts = [_with_tag(text, part.tag_of(seq)) for seq, text in enumerate(texts, first)]
    return texts


def _with_tag(text: bytes, tag: bytes) -> bytes:
    return b'"$tag":%b,%b' % (msgspec.json.encode(tag.decode()), text) if tag else text


def job_texts(
    seqs: Sequence[int], texts: dict[int, bytes], token: int, deadline_ms: int, deliveries: Sequence[int]
) -> list[bytes]:
    """`{"$seq":7,"lease_id":"lease_1f","deadline":…,"deliveries":1,` and the rest of each record, by `stored_texts`."""
    if max(deliveries) == 1:
        template = _JOB % (b"%d", b"%x", deadline_ms, b"1", b"%b")
        return [template % (seq, token + place, texts[seq]) for place, seq in enumerate(seqs)]
    template = _JOB % (b"%d", b"%x", deadline_ms, b"%d", b"%b")
    return [template % (seq, token + place, deliveries[place], texts[seq]) for place, seq in enumerate(seqs)]


def lease_id_of(job: bytes) -> str:
    """The lease id in a job's text."""
    return job.split(b'"', 6)[5].decode()
