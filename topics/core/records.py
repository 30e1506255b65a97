"""Records on their way into a log: checked columns, and the wire-ready form they are stored in.

A batch is a handful of columns, never an object a record. `Records` is what a write brought, checked, before it has
seqs. `Records.encode` gives it seqs and a timestamp and makes the text and the columns of a block out of it. All
checks look at a whole column at once; only when one fails is the culprit searched, to name it: `records[17].tag`.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from operator import add
from typing import Any

import msgspec
import numpy as np

from topics.core.encoded import EncodedRecords
from topics.errors import BatchTooLarge, InvalidRequest, RecordTooLarge
from topics.jsontext import encode, too_deep
from topics.limits import (
    BATCH_RECORDS_DEFAULT,
    META_BYTES_DEFAULT,
    META_KEYS_MAX,
    NESTING_MAX,
    NODE_BYTES_DEFAULT,
    RECORD_BYTES_DEFAULT,
    TAG_BYTES_DEFAULT,
)

__all__ = ["DEFAULT_LIMITS", "EncodedRecords", "Json", "RecordLimits", "Records", "nesting", "too_deep"]

Json = bytes | msgspec.Raw
"""JSON text, valid and in UTF-8."""


class RecordLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How large a batch and its records may be; the settings of the same names."""

    batch_records: int = BATCH_RECORDS_DEFAULT
    record_bytes: int = RECORD_BYTES_DEFAULT
    meta_bytes: int = META_BYTES_DEFAULT
    tag_bytes: int = TAG_BYTES_DEFAULT
    node_bytes: int = NODE_BYTES_DEFAULT


DEFAULT_LIMITS = RecordLimits()
FEW = 32
"""Up to so many records, a step of Python for each takes less time than an operation on arrays."""


class Records:
    """What a write brought, checked. Made by `Records.check` from columns, or by `Records.of` from Python objects."""

    __slots__ = (
        "_data_lens",
        "count",
        "datas",
        "heads",
        "meta_lens",
        "node_ids",
        "node_names",
        "payload_bytes",
        "tag_ends",
        "tags",
    )

    def __init__(self, datas: list[Json]) -> None:
        self.datas = datas
        self.count = len(datas)
        self._data_lens: array[int] | None = None
        self.payload_bytes = 0
        self.meta_lens: array[int] | None = None
        self.tag_ends: array[int] | None = None
        self.tags = b""
        self.node_ids: array[int] | None = None
        self.node_names: tuple[bytes, ...] = ()
        self.heads: bytes | list[bytes] = b""
        """What stands between `$ts` and `data` in the text (node and meta): one for all, or one a record."""

    @classmethod
    def check(
        cls,
        datas: list[Json],
        *,
        tags: Sequence[str] | None = None,
        nodes: Sequence[str] | None = None,
        metas: list[Json] | None = None,
        node: str = "",
        limits: RecordLimits = DEFAULT_LIMITS,
    ) -> Records:
        """From columns of valid JSON, one entry a record. An empty tag, node or meta is none; `node` is the default."""
        if not 1 <= len(datas) <= limits.batch_records:
            raise _wrong_count(len(datas), limits.batch_records)
        records = cls(datas)
        if tags is not None:
            records._take_tags(tags, limits.tag_bytes)
        if metas is not None and any(map(len, metas)):
            records._take_metas(metas, limits)
        if node or (nodes is not None and any(nodes)):
            records._take_nodes(nodes, node, limits.node_bytes)
        if records.meta_lens is not None:
            records._add_metas(metas or [])
        records._measure(limits.record_bytes)
        return records

    @classmethod
    def of(
        cls, items: Iterable[Mapping[str, Any]], *, node: str = "", limits: RecordLimits = DEFAULT_LIMITS
    ) -> Records:
        """From Python objects, each a mapping with `data` and, if wanted, `tag`, `node` and `meta`.

        `data` is any value msgspec encodes as JSON; JSON text that is ready is passed as `msgspec.Raw`.
        """
        items = list(items)
        if not 1 <= len(items) <= limits.batch_records:
            raise _wrong_count(len(items), limits.batch_records)
        datas: list[Json] = [_encode_item(item, index) for index, item in enumerate(items)]
        return cls.check(
            datas,
            tags=_text_column(items, "tag"),
            nodes=_text_column(items, "node"),
            metas=[_encode_meta(item.get("meta"), index) for index, item in enumerate(items)],
            node=_text(node, "node"),
            limits=limits,
        )

    @property
    def data_lens(self) -> array[int]:
        if self._data_lens is None:
            self._data_lens = array("I", map(len, self.datas))
        return self._data_lens

    @property
    def is_plain(self) -> bool:
        """Whether this is one record without tag, node and meta, which is written without making any columns."""
        return self.count == 1 and self.tag_ends is None and self.meta_lens is None and self.node_ids is None

    def plain_text(self, seq: int, ts: int) -> bytes:
        """The text of a plain record."""
        return b'{"$seq":%d,"$ts":%d,"data":%b}' % (seq, ts, self.datas[0])

    def encode(self, first_seq: int, ts: int) -> EncodedRecords:
        """The records as a log stores them, with seqs from `first_seq` on."""
        if self.count == 1:
            head = self.heads if isinstance(self.heads, bytes) else self.heads[0]
            text = b'{"$seq":%d,"$ts":%d,%b"data":%b}' % (first_seq, ts, head, self.datas[0])
            ends = array("I", (len(text),))
        else:
            text, ends = self._encode_text(first_seq, ts)
        return EncodedRecords(
            first_seq,
            ts,
            text,
            ends,
            self.data_lens,
            self.payload_bytes,
            self.meta_lens,
            self.tag_ends,
            self.tags,
            self.node_ids,
            self.node_names,
        )

    def _encode_text(self, first_seq: int, ts: int) -> tuple[bytes, array[int]]:
        """All records by one format operation, and where each ends, computed rather than looked for."""
        count = self.count
        if count <= FEW:
            return self._encode_few(first_seq, ts)
        sizes = np.frombuffer(self.data_lens, np.uint32) + _digits(first_seq, count)
        fields: list[Any]
        if isinstance(self.heads, bytes):
            template = b',{"$seq":%%d,"$ts":%d,%b"data":%%b}' % (ts, self.heads.replace(b"%", b"%%"))
            sizes += np.uint32(len(template % (0, b"")) - 1)
            fields = [None] * (2 * count)
        else:
            template = b',{"$seq":%%d,"$ts":%d,%%b"data":%%b}' % ts
            sizes += np.uint32(len(template % (0, b"", b"")) - 1)
            sizes += np.fromiter(map(len, self.heads), np.uint32, count)
            fields = [None] * (3 * count)
            fields[1::3] = self.heads
        stride = len(fields) // count
        fields[::stride] = range(first_seq, first_seq + count)
        fields[stride - 1 :: stride] = self.datas
        text: bytes = (template[1:] + template * (count - 1)) % tuple(fields)
        ends = np.cumsum(sizes, dtype=np.uint32) - np.uint32(1)
        return text, array("I", ends.tobytes())

    def _encode_few(self, first_seq: int, ts: int) -> tuple[bytes, array[int]]:
        """The same record by record: for so few, the first call into numpy costs more than all of it."""
        seqs = range(first_seq, first_seq + self.count)
        if isinstance(self.heads, bytes):
            template = b'{"$seq":%%d,"$ts":%d,%b"data":%%b}' % (ts, self.heads.replace(b"%", b"%%"))
            texts = [template % pair for pair in zip(seqs, self.datas, strict=True)]
        else:
            template = b'{"$seq":%%d,"$ts":%d,%%b"data":%%b}' % ts
            texts = [template % fields for fields in zip(seqs, self.heads, self.datas, strict=True)]
        # Before the second record stands one comma, before the third one there are two.
        return b",".join(texts), array("I", map(add, accumulate(map(len, texts)), range(self.count)))

    def _take_tags(self, tags: Sequence[str], tag_bytes: int) -> None:
        joined = "".join(tags)
        if not joined:
            return
        encoded: Sequence[str | bytes] = tags if joined.isascii() else [tag.encode() for tag in tags]
        lens = array("I", map(len, encoded))
        _check_lens(lens, tag_bytes, "tag")
        self.tags = joined.encode()
        self.tag_ends = array("I", accumulate(lens))

    def _take_nodes(self, nodes: Sequence[str] | None, node: str, node_bytes: int) -> None:
        if len(node.encode()) > node_bytes:
            raise _too_long("node", len(node.encode()), node_bytes)
        if nodes is None:
            self.node_ids = array("H", (1,)) * self.count
            self.node_names = (node.encode(),)
            self.heads = _node_head(node)
            return
        if node:
            nodes = [own or node for own in nodes]
        names = [name for name in dict.fromkeys(nodes) if name]
        if max(map(len, map(str.encode, names))) > node_bytes:
            _check_lens(array("I", [len(name.encode()) for name in nodes]), node_bytes, "node")
        ids = {"": 0} | {name: number for number, name in enumerate(names, 1)}
        heads = {"": b""} | {name: _node_head(name) for name in names}
        self.node_ids = array("H", map(ids.__getitem__, nodes))
        self.node_names = tuple(name.encode() for name in names)
        self.heads = list(map(heads.__getitem__, nodes)) if len(heads) > 2 or "" in nodes else heads[names[0]]

    def _take_metas(self, metas: list[Json], limits: RecordLimits) -> None:
        self.meta_lens = array("I", map(len, metas))
        _check_lens(self.meta_lens, limits.meta_bytes, "meta")
        _check_metas(metas)

    def _add_metas(self, metas: list[Json]) -> None:
        parts = [b'"meta":%b,' % meta if meta else b"" for meta in map(bytes, metas)]
        if isinstance(self.heads, bytes):
            self.heads = [self.heads + part for part in parts]
        else:
            self.heads = [head + part for head, part in zip(self.heads, parts, strict=True)]

    def _measure(self, record_bytes: int) -> None:
        """Sizes are the bytes of data and meta as received; nesting is checked where there is room for it."""
        if self.count == 1:
            largest = self.payload_bytes = len(self.datas[0]) + (self.meta_lens[0] if self.meta_lens else 0)
        elif self.count <= FEW and self.meta_lens is None:
            largest = max(self.data_lens)
            self.payload_bytes = sum(self.data_lens)
        else:
            sizes = np.frombuffer(self.data_lens, np.uint32)
            if self.meta_lens is not None:
                sizes = sizes + np.frombuffer(self.meta_lens, np.uint32)
            largest = int(sizes.max())
            self.payload_bytes = int(sizes.sum(dtype=np.uint64))
        if largest > record_bytes:
            raise self._too_large(record_bytes)
        if largest > 2 * NESTING_MAX:
            self._check_nesting()

    def _too_large(self, record_bytes: int) -> RecordTooLarge:
        metas = self.meta_lens or [0] * self.count
        index, size = next(
            (index, data + meta)
            for index, (data, meta) in enumerate(zip(self.data_lens, metas, strict=True))
            if data + meta > record_bytes
        )
        return RecordTooLarge(
            f"records[{index}] has {size} bytes of data and meta, at most {record_bytes} are allowed",
            field=f"records[{index}]",
            bytes=size,
            max_bytes=record_bytes,
        )

    def _check_nesting(self) -> None:
        for index, length in enumerate(self.data_lens):
            if length > 2 * NESTING_MAX and nesting(bytes(self.datas[index])) > NESTING_MAX:
                raise too_deep(f"records[{index}].data")


_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_STEP = np.zeros(256, np.int8)
_STEP[list(b"[{")] = 1
_STEP[list(b"]}")] = -1

_metas_decoder = msgspec.json.Decoder(list[dict[str, str]])
_meta_decoder = msgspec.json.Decoder(dict[str, str])
META_EXPECTED = f"an object of strings with at most {META_KEYS_MAX} keys"


def nesting(data: bytes) -> int:
    """How deep arrays and objects stand in each other in valid JSON, or an upper bound not above the limit."""
    openings = data.count(b"[") + data.count(b"{")
    if openings <= NESTING_MAX:
        return openings
    text = np.frombuffer(_STRING.sub(b"", data), np.uint8)
    return int(np.cumsum(_STEP[text], dtype=np.int32).max(initial=0))


def _digits(first_seq: int, count: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """How many digits each of `count` seqs has."""
    digits = np.full(count, len(str(first_seq)), np.uint32)
    longer = 10 ** len(str(first_seq))
    while longer < first_seq + count:
        digits[longer - first_seq :] += np.uint32(1)
        longer *= 10
    return digits


def _node_head(node: str) -> bytes:
    return b'"$node":%b,' % msgspec.json.encode(node)


def _wrong_count(count: int, most: int) -> InvalidRequest:
    kind = BatchTooLarge if count > most else InvalidRequest
    return kind(
        f"records must hold 1 to {most} records, not {count}", field="records", count=count, expected=f"1 to {most}"
    )


def _too_long(field: str, length: int, most: int) -> InvalidRequest:
    return InvalidRequest(
        f"{field} has {length} bytes, at most {most} are allowed", field=field, bytes=length, max_bytes=most
    )


def _check_lens(lens: array[int], most: int, field: str) -> None:
    if max(lens) > most:
        index = next(index for index, length in enumerate(lens) if length > most)
        raise _too_long(f"records[{index}].{field}", lens[index], most)


def _check_metas(metas: list[Json]) -> None:
    try:
        decoded = _metas_decoder.decode(b"[%b]" % b",".join([meta for meta in metas if len(meta)]))
        if max(map(len, decoded)) <= META_KEYS_MAX:
            return
    except msgspec.ValidationError:
        pass
    index = next(index for index, meta in enumerate(metas) if len(meta) and not _is_meta(meta))
    field = f"records[{index}].meta"
    raise InvalidRequest(f"{field} must be {META_EXPECTED}", field=field, expected=META_EXPECTED)


def _is_meta(meta: Json) -> bool:
    try:
        return len(_meta_decoder.decode(meta)) <= META_KEYS_MAX
    except msgspec.ValidationError:
        return False


def empty_name(field: str) -> InvalidRequest:
    """What a caller is told who sends a tag or node that is there and names nothing."""
    expected = "1 byte or more; leave it out for none"
    return InvalidRequest(f"{field} is empty; leave it out, or name something", field=field, expected=expected)


def _text(value: object, field: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidRequest(f"{field} must be a string, not {type(value).__name__}", field=field, expected="string")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidRequest(f"{field} holds a lone surrogate: {error}", field=field, expected="Unicode") from None
    return value


def _text_column(items: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    return [_text(item.get(key), f"records[{index}].{key}") for index, item in enumerate(items)]


def _encode_meta(meta: object, index: int) -> Json:
    return b"" if meta is None else encode(meta, f"records[{index}].meta")


def _encode_item(item: Mapping[str, Any], index: int) -> bytes:
    if not isinstance(item, Mapping) or "data" not in item:
        field = f"records[{index}]"
        raise InvalidRequest(f"{field} must be a mapping with data", field=field, expected="a mapping with data")
    data = item["data"]
    if isinstance(data, bytes | bytearray | memoryview):
        field = f"records[{index}].data"
        raise InvalidRequest(
            f"{field} is bytes, and data is JSON: pass text, base64 text, or JSON that is ready as msgspec.Raw",
            field=field,
            expected="a JSON value",
        )
    return encode(data, f"records[{index}].data")
