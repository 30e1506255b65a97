"""Records of a log as new records for another one: data, tag and node as they were, meta changed on the way."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import accumulate

import msgspec

from topics.core.block import Block
from topics.core.log import Log
from topics.core.records import Json, Records
from topics.core.tail import Tail

Meta = dict[str, str]
ChangeMeta = Callable[[int, Meta], Meta]
"""From a seq and the meta of its record to the meta of the copy."""

_meta_decoder = msgspec.json.Decoder(Meta)


def block_of(log: Log, seq: int) -> Block:
    """The block that holds a record; of a tail, just that record. Raises `Damaged` when it cannot be read."""
    run = log.run_at(seq)
    assert run is not None, f"{seq} is not in the log"
    block, _ = run.block_of(seq, 1) if isinstance(run, Tail) else run.block_at(seq)
    return block


def meta_of(block: Block, seq: int) -> Meta:
    text = block.meta(seq - block.first_seq)
    return _meta_decoder.decode(text) if text is not None else {}


def fitting(log: Log, seqs: Sequence[int], bytes_max: int) -> int:
    """How many of the first records have so many payload bytes together at most; one always does."""
    total_bytes = 0
    for count, seq in enumerate(seqs):
        block = block_of(log, seq)
        total_bytes += int(block.sizes[seq - block.first_seq])
        if count and total_bytes > bytes_max:
            return count
    return len(seqs)


def copies(log: Log, seqs: Sequence[int], change: ChangeMeta) -> Records:
    """The records of a log with these seqs, checked when they were written and not again."""
    datas: list[Json] = []
    heads: list[bytes] = []
    metas: list[bytes] = []
    tags: list[bytes] = []
    node_ids: dict[bytes, int] = {}
    nodes = array("H")
    for seq in seqs:
        block = block_of(log, seq)
        index = seq - block.first_seq
        node = block.node(index) or b""
        meta = change(seq, meta_of(block, seq))
        metas.append(msgspec.json.encode(meta) if meta else b"")
        datas.append(block.data(index))
        tags.append(block.tag(index))
        nodes.append(node_ids.setdefault(node, len(node_ids) + 1) if node else 0)
        heads.append(_head(node, metas[-1]))
    records = Records(datas)
    records.heads = heads
    records.payload_bytes = sum(map(len, datas)) + sum(map(len, metas))
    if any(metas):
        records.meta_lens = array("I", map(len, metas))
    if any(tags):
        records.tags = b"".join(tags)
        records.tag_ends = array("I", accumulate(map(len, tags)))
    if node_ids:
        records.node_ids = nodes
        records.node_names = tuple(node_ids)
    return records


def _head(node: bytes, meta: bytes) -> bytes:
    """What stands between `$ts` and `data` in a record's text."""
    head = b'"$node":%b,' % msgspec.json.encode(node.decode()) if node else b""
    return head + b'"meta":%b,' % meta if meta else head
