"""Stamps: each copy of an `exactly_once` router says in its meta what it is a copy of.

    "meta":{"k":"v","_topics_router":"orders->audit/orders/1/0/7"}

The stamp is the last field of the meta, and takes the place of one that a router put there before. A copy that nobody
looks at needs to know only how long its meta is. That follows from numbers, so that stamping a block is a few
operations on columns; the text is made when it is asked for, and not kept. Only metas that are not as we would write
them, because they have a stamp already, nothing inside or white space at their edges, are gone through one by one.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from topics.core.block import U32, Block
from topics.core.digits import digit_counts

STAMP: Final = "_topics_router"
"""The key in the meta of a copy that says where it came from."""
_KEY: Final = b'"_topics_router"'
_DATA_KEY: Final = b'"data":'
_UNUSUAL: Final = np.frombuffer(b" \t\r\n}", np.uint8)
"""What stands behind the first brace of a meta, or before the last one, that is not as we would write it."""
_last_stamp = re.compile(rb'[{,]"_topics_router":"[^"\\]*"\}\Z').search
"""Where a stamp begins that a router put into a meta."""
_decode = msgspec.json.Decoder(dict[str, str]).decode


class Stamp:
    """What some records of a block have in their meta when a router has stamped them."""

    def __init__(self, block: Block, chosen: npt.NDArray[np.int64] | None, origin: str) -> None:
        """`origin` stands before the seq in the stamp; `chosen` are positions in the block, None for all."""
        self._block = block
        self._chosen = chosen
        self._origin = origin.encode()
        self.is_usual = _is_usual(block)
        """Whether no record has to be looked at by itself."""
        self.meta_lens = self._lens() if self.is_usual else np.array([len(meta) for meta in self._metas()], np.uint32)

    def rests(self, begins: list[int]) -> list[bytes]:
        """The texts of the records, each from where it begins here on, with their stamps."""
        block = self._block
        text, ends = bytes(block.text), self._pick(block.ends)
        data_at = (ends - self._pick(block.data_lens) - np.uint32(len(_DATA_KEY) + 1)).tolist()
        places = zip(begins, data_at, ends.tolist(), strict=True)
        if not self.is_usual:
            assert block.meta_lens is not None
            lens = self._pick(block.meta_lens).tolist()
            # A meta stands between its key and a comma.
            return [
                b'%b"meta":%b,%b'
                % (text[begin : data - size - len(b'"meta":,') if size else data], meta, text[data:end])
                for (begin, data, end), size, meta in zip(places, lens, self._metas(), strict=True)
            ]
        field = b'%b:"%b%%d"},%%b' % (_KEY, self._origin.replace(b"%", b"%%"))
        first, further = b'%b"meta":{' + field, b"%b," + field
        seqs = self._seqs().tolist()
        if block.meta_lens is None:
            return [
                first % (text[begin:data], seq, text[data:end])
                for (begin, data, end), seq in zip(places, seqs, strict=True)
            ]
        lens = self._pick(block.meta_lens).tolist()
        # Of a meta that is there all but its brace and the comma behind it.
        return [
            further % (text[begin : data - 2], seq, text[data:end])
            if size
            else first % (text[begin:data], seq, text[data:end])
            for (begin, data, end), seq, size in zip(places, seqs, lens, strict=True)
        ]

    def _lens(self) -> U32:
        field_bytes = digit_counts(self._seqs()) + np.uint32(len(_KEY) + len(b':""') + len(self._origin))
        if self._block.meta_lens is None:
            return field_bytes + np.uint32(len(b"{}"))
        lens = self._pick(self._block.meta_lens)
        return field_bytes + np.where(lens, lens + np.uint32(len(b",")), np.uint32(len(b"{}")))

    def _metas(self) -> list[bytes]:
        """Of records whose metas are not all as we would write them."""
        block, text = self._block, bytes(self._block.text)
        assert block.meta_lens is not None
        lens = self._pick(block.meta_lens)
        ends = self._pick(block.ends) - self._pick(block.data_lens) - np.uint32(len(_DATA_KEY) + len(b"},"))
        field = b'%b:"%b%%d"' % (_KEY, self._origin.replace(b"%", b"%%"))
        return [
            _stamped(text[end - size : end] if size else b"{}", field % seq)
            for end, size, seq in zip(ends.tolist(), lens.tolist(), self._seqs().tolist(), strict=True)
        ]

    def _seqs(self) -> npt.NDArray[np.uint64]:
        block = self._block
        seqs = np.arange(block.first_seq, block.last_seq + 1, dtype=np.uint64)
        return seqs if self._chosen is None else seqs[self._chosen]

    def _pick(self, column: U32) -> U32:
        return column if self._chosen is None else column[self._chosen]


def _is_usual(block: Block) -> bool:
    """Whether a stamp is put into each meta by writing it before the last brace, and alone where there is none."""
    if block.meta_lens is None:
        return True
    if _KEY in bytes(block.text):
        return False
    has_meta = block.meta_lens > 0
    text, lens = np.frombuffer(block.text, np.uint8), block.meta_lens[has_meta].astype(np.int64)
    ends = (block.ends.astype(np.int64) - block.data_lens - (len(_DATA_KEY) + len(b"},")))[has_meta]
    return not (np.isin(text[ends - lens + 1], _UNUSUAL).any() or np.isin(text[ends - 2], _UNUSUAL[:-1]).any())


def _stamped(meta: bytes, field: bytes) -> bytes:
    if _KEY in meta:
        # It came by such a router before: it now comes by this one.
        found = _last_stamp(meta)
        if found is not None:
            meta = meta[: found.start()] + b"}" if found.start() else b"{}"
        if _KEY in meta:
            meta = msgspec.json.encode({key: value for key, value in _decode(meta).items() if key != STAMP})
    inner = meta.strip()[1:-1].strip()
    return b"{%b,%b}" % (inner, field) if inner else b"{%b}" % field
