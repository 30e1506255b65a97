"""A job as a worker gets it: the stored text of its record with the lease spliced in behind the seq."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from topics.core.leases import LEASE_ID_PREFIX
from topics.core.log import Log
from topics.core.run import Run
from topics.core.tail import Tail

_LEASE = b'%b,"lease_id":"' + LEASE_ID_PREFIX.encode() + b'%x","deadline":%d,"deliveries":%d,%b'


def stored_texts(log: Log, seqs: Iterable[int], bytes_max: int) -> dict[int, tuple[bytes, bytes]]:
    """The text and the tag of records that are in the log, by seq: as many of the first ones as `bytes_max` allows, and
    one at least. Raises `Damaged` when one cannot be read."""
    found: dict[int, tuple[bytes, bytes]] = {}
    run: Run | None = None
    left_bytes = bytes_max
    for seq in seqs:
        if run is None or not run.first_seq <= seq <= run.last_seq:
            run = log.run_at(seq)
            assert run is not None, f"{seq} is not in the log"
        if isinstance(run, Tail):
            text, tag = run.text_of(seq), run.tag_of(seq)
        else:
            block, _ = run.block_at(seq)
            index = seq - block.first_seq
            text = bytes(block.text[block.start(index) : int(block.ends[index])])
            tag = b"" if block.tag_ends is None else block.tag(index)
        left_bytes -= len(text)
        if left_bytes < 0 and found:
            break
        found[seq] = text, tag
    return found


def job_text(text: bytes, tag: bytes, token: int, deadline_ms: int, deliveries: int) -> bytes:
    """`{"$seq":7,"lease_id":"lease_1f","deadline":…,"deliveries":1,` and the rest of the record, its tag included."""
    seq, _, rest = text.partition(b",")
    if tag:
        rest = b'"$tag":%b,%b' % (msgspec.json.encode(tag.decode()), rest)
    return _LEASE % (seq, token, deadline_ms, deliveries, rest)


def lease_id_of(job: bytes) -> str:
    """The lease id in a job's text."""
    return job.split(b'"', 6)[5].decode()
