"""Cutting a page out of blocks: the bytes a client gets, taken from the bytes that are stored.

The plain page (meta and data, no tags) is one slice a span. Other shapes are put together from the parts of each
record, whose places follow from the lengths in the columns; nothing is parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt

from topics.core.block import Block, Buffer
from topics.core.read import Span

_DATA_KEY = len(',"data":')
_META_KEY = len(',"meta":')


@dataclass(frozen=True, slots=True)
class Shape:
    """Which parts of a record a reader wants."""

    tags: bool = False
    meta: bool = True
    data: bool = True


PLAIN = Shape()

Render = Callable[[Sequence[Span], Shape], bytes]
"""Makes the body of a page out of its spans; `cut` does it in JSON."""


def cut(spans: Sequence[Span], shape: Shape = PLAIN) -> bytes:
    """The records of the spans as JSON objects joined by commas."""
    parts: list[Buffer] = []
    for span in spans:
        if _is_plain(span.block, shape):
            parts.extend(_slices(span))
        else:
            parts.extend(_records(span, shape))
    return b",".join(parts)


def _is_plain(block: Block, shape: Shape) -> bool:
    return shape.data and (shape.meta or block.meta_lens is None) and not (shape.tags and block.tag_ends is not None)


def _slices(span: Span) -> list[Buffer]:
    block, text = span.block, span.block.text
    if span.chosen is None:
        return [text[block.start(span.start) : int(block.ends[span.end - 1])]]
    starts, ends = _bounds(block, span.chosen)
    breaks = np.flatnonzero(np.diff(span.chosen) != 1)
    firsts = starts[np.concatenate(([0], breaks + 1))].tolist()
    lasts = ends[np.concatenate((breaks, [len(span.chosen) - 1]))].tolist()
    return [text[first:last] for first, last in zip(firsts, lasts, strict=True)]


def _bounds(block: Block, chosen: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where the text of each chosen record begins and ends."""
    ends = block.ends.astype(np.int64)
    starts = np.where(chosen > 0, ends[chosen - 1] + 1, 0)
    return starts, ends[chosen]


def _records(span: Span, shape: Shape) -> Iterator[bytes]:
    block = span.block
    chosen = np.arange(span.start, span.end) if span.chosen is None else span.chosen
    starts, ends = _bounds(block, chosen)
    data_at = ends - 1 - block.data_lens[chosen].astype(np.int64) - _DATA_KEY
    meta_at = data_at
    if block.meta_lens is not None:
        meta_lens = block.meta_lens[chosen].astype(np.int64)
        meta_at = np.where(meta_lens > 0, data_at - meta_lens - _META_KEY, data_at)
    text = block.text
    with_tags = shape.tags and block.tag_ends is not None
    for position, start, meta, data, end in zip(
        chosen.tolist(), starts.tolist(), meta_at.tolist(), data_at.tolist(), ends.tolist(), strict=True
    ):
        parts: list[Buffer] = [text[start:meta]]
        if with_tags and (tag := block.tag(position)):
            parts.append(b',"$tag":' + msgspec.json.encode(tag.decode()))
        if shape.meta:
            parts.append(text[meta:data])
        parts.append(text[data:end] if shape.data else b"}")
        yield b"".join(parts)
