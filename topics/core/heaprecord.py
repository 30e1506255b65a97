"""A message of a heap as a record, and back.

Data is the payload: as it is when it was said to be JSON and is, else as base64 text, which `meta.$encoding` says. What
else belongs to the message is in the record's meta as strings, so that nothing but the record is needed to know it:

    $priority      when it is not 0                     $max_retries   when it is not the heap's own
    $producer_id, $epoch, $sequence                     who enqueued it, and as what

A record that came another way has none of these, or something else under these names: then it is a message of priority
0. Names without `$` are the producer's own.
"""

from __future__ import annotations

import binascii
import re
from array import array
from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt

from topics.core.block import Block
from topics.core.dedupe import Dedupe, ProducerKey
from topics.core.encoded import EncodedRecords
from topics.core.records import Json, Records, nesting
from topics.core.tail import Tail
from topics.heapmodel import NewMessage
from topics.limits import NESTING_MAX, U32_MAX, U64_MAX
from topics.model import BASE64, ENCODING

if TYPE_CHECKING:
    from topics.core.log import Log

I64 = npt.NDArray[np.int64]

PRIORITY = "$priority"
MAX_RETRIES = "$max_retries"
PRODUCER_ID = "$producer_id"
EPOCH = "$epoch"
SEQUENCE = "$sequence"
OWN_NAMES = frozenset({PRIORITY, MAX_RETRIES, PRODUCER_ID, EPOCH, SEQUENCE, ENCODING})

I64_MIN, I64_MAX = -(2**63), 2**63 - 1
FEW = 4
"""Up to so many messages of a block, a step of Python for each takes less time than an operation on arrays."""


class Stored(msgspec.Struct, frozen=True, gc=False):
    """One message as it is stored."""

    ts: int
    payload: bytes
    is_json: bool
    meta: dict[str, str]
    size_bytes: int
    """Of data and meta as they are stored."""

    @property
    def priority(self) -> int:
        return _priority(self.meta.get(PRIORITY, "0"))

    @property
    def max_retries(self) -> int | None:
        return _whole(self.meta.get(MAX_RETRIES), 0, U32_MAX)

    @property
    def producer_id(self) -> str | None:
        return self.meta.get(PRODUCER_ID)

    @property
    def epoch(self) -> int | None:
        return _whole(self.meta.get(EPOCH), 0, U64_MAX)

    @property
    def sequence(self) -> int | None:
        return _whole(self.meta.get(SEQUENCE), 0, U64_MAX)

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to know but payload and priority."""
        return len(self.meta) <= (PRIORITY in self.meta) + (ENCODING in self.meta)

    @property
    def own_meta(self) -> dict[str, str] | None:
        """What the producer sent along."""
        if self.is_plain:
            return None
        own = {name: value for name, value in self.meta.items() if not name.startswith("$")}
        return own or None


class _Kept(msgspec.Struct, rename={"priority": PRIORITY}, gc=False):
    """What of a meta says where a message belongs."""

    priority: str = "0"


class _Keyed(msgspec.Struct, rename={"producer_id": PRODUCER_ID, "epoch": EPOCH, "sequence": SEQUENCE}, gc=False):
    """What of a meta says that a message was enqueued once."""

    producer_id: str = ""
    epoch: str = "0"
    sequence: str = ""


_NUMBER = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_meta_decoder = msgspec.json.Decoder(dict[str, str])
_kept_decoder = msgspec.json.Decoder(list[_Kept])
_keyed_decoder = msgspec.json.Decoder(list[_Keyed])
_raw_decoder = msgspec.json.Decoder(list[msgspec.Raw])


# ---- on the way in


def records_of(messages: Sequence[NewMessage]) -> Records:
    """Messages that were checked, as records."""
    datas: list[Json] = []
    metas: list[bytes] = []
    are_json = are_all_json([message.payload for message in messages if message.is_json])
    for message in messages:
        payload = message.payload
        as_json = message.is_json and (are_json or is_json(payload))
        datas.append(payload if as_json else b'"%b"' % b64encode(payload))
        metas.append(_meta_text(message, as_json))
    records = Records(datas)
    records.heads = [b'"meta":%b,' % meta if meta else b"" for meta in metas]
    records.payload_bytes = sum(map(len, datas)) + sum(map(len, metas))
    if any(metas):
        records.meta_lens = array("I", map(len, metas))
    return records


def _meta_text(message: NewMessage, as_json: bool) -> bytes:
    if message.meta is None and message.max_retries is None and message.producer_id is None:
        # Most messages have no more than a priority.
        priority = b'"$priority":"%d"' % message.priority if message.priority else b""
        if as_json:
            return b"{%b}" % priority if priority else b""
        return b'{%b,"$encoding":"base64"}' % priority if priority else b'{"$encoding":"base64"}'
    meta: dict[str, str] = {}
    if message.priority:
        meta[PRIORITY] = str(message.priority)
    if message.max_retries is not None:
        meta[MAX_RETRIES] = str(message.max_retries)
    if message.producer_id is not None:
        meta[PRODUCER_ID] = message.producer_id
        if message.sequence is not None:
            meta |= {EPOCH: str(message.epoch), SEQUENCE: str(message.sequence)}
    if not as_json:
        meta[ENCODING] = BASE64
    return msgspec.json.encode(meta | (message.meta or {}))


def are_all_json(payloads: list[bytes]) -> bool:
    """Whether payloads are JSON for sure, looked at together: each is what stands between two commas of an array."""
    text = b",".join(payloads)
    # What is shorter than that has no room to be nested too deep.
    is_short = max(map(len, payloads), default=0) <= 2 * NESTING_MAX
    if not text.isascii() or not (is_short or max(map(nesting, payloads)) <= NESTING_MAX):
        return False
    try:
        return list(map(bytes, _raw_decoder.decode(b"[%b]" % text))) == payloads
    except (msgspec.DecodeError, RecursionError):
        return False


def is_json(payload: bytes) -> bool:
    """Whether bytes are one JSON value, such as a record's data may be."""
    if nesting(payload) > NESTING_MAX:
        return False
    try:
        if not payload.isascii():
            payload.decode()
        return len(_raw_decoder.decode(b"[%b]" % payload)) == 1
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


# ---- on the way out


def read(log: Log, seq: int) -> Stored:
    """The message with this seq, which is in the log. Raises `Damaged` when it cannot be read."""
    return _stored(*_part_of(log, seq).record_of(seq))


def read_many(log: Log, seqs: Sequence[int]) -> list[Stored]:
    """The messages with these seqs, ascending, which are in the log: each block is looked for once."""
    found: list[Stored] = []
    while len(found) < len(seqs):
        at = len(found)
        part = _part_of(log, seqs[at])
        own = seqs[at : bisect_right(seqs, part.last_seq, at)]
        records = _columns(part, own) if isinstance(part, Block) and len(own) > FEW else map(part.record_of, own)
        found += [_stored(*record) for record in records]
    return found


def _columns(block: Block, seqs: Sequence[int]) -> Iterator[tuple[int, bytes, bytes]]:
    """What `record_of` gives for each, of whole columns."""
    places = np.array(seqs, np.int64) - block.first_seq
    ends = block.ends[places].astype(np.int64) - 1
    starts = (ends - block.data_lens[places]).tolist()
    text = block.text
    datas = [bytes(text[start:end]) for start, end in zip(starts, ends.tolist(), strict=True)]
    metas = [b""] * len(seqs) if block.meta_lens is None else _metas(block, seqs)
    deltas = [0] * len(seqs) if block.ts_deltas is None else block.ts_deltas[places].tolist()
    return zip([block.first_ts + delta for delta in deltas], metas, datas, strict=True)


def _stored(ts: int, meta_text: bytes, data: bytes) -> Stored:
    meta = _meta_decoder.decode(meta_text) if meta_text else {}
    size_bytes = len(data) + len(meta_text)
    if meta.get(ENCODING) == BASE64 and data[:1] == b'"':
        try:
            return Stored(ts, b64decode(data[1:-1], validate=True), False, meta, size_bytes)
        except binascii.Error:
            pass  # It came another way, and is what it is.
    return Stored(ts, data, True, meta, size_bytes)


def ts_at(log: Log, seq: int) -> int:
    """When the message with this seq, which is in the log, was enqueued."""
    return _part_of(log, seq).ts_of(seq)


def _part_of(log: Log, seq: int) -> Tail | Block:
    run = log.run_at(seq)
    assert run is not None, f"{seq} is not in the log"
    return run if isinstance(run, Tail) else run.block_at(seq)[0]


def priorities(log: Log, seqs: Sequence[int]) -> I64:
    """The priorities that messages came with; the seqs are in the log, ascending."""
    found = np.zeros(len(seqs), np.int64)
    at = 0
    while at < len(seqs):
        run = log.run_at(seqs[at])
        assert run is not None, f"{seqs[at]} is not in the log"
        part: Tail | Block = run if isinstance(run, Tail) else run.block_at(seqs[at])[0]
        end = bisect_right(seqs, part.last_seq, at)
        if isinstance(part, Tail):
            found[at:end] = _priorities([part.meta_of(seq) for seq in seqs[at:end]])
        elif part.meta_lens is not None:
            found[at:end] = _priorities(_metas(part, seqs[at:end]))
        at = end
    return found


def remember_keys(dedupe: Dedupe, records: EncodedRecords) -> None:
    """Remember where each message of a batch went that was enqueued once."""
    block = records.as_block()
    if block.meta_lens is None:
        return
    metas = _metas(block, range(records.first_seq, records.last_seq + 1))
    for seq, kept in enumerate(_keyed_decoder.decode(_array(metas)), records.first_seq):
        key = _producer_key(kept)
        if key is not None:
            dedupe.record(key, records.ts, seq, 1)


def _producer_key(kept: _Keyed) -> ProducerKey | None:
    sequence, epoch = _whole(kept.sequence, 0, U64_MAX), _whole(kept.epoch, 0, U64_MAX)
    if not kept.producer_id or sequence is None or epoch is None:
        return None
    return ProducerKey(kept.producer_id, epoch, sequence)


def _metas(block: Block, seqs: Sequence[int]) -> list[bytes]:
    """The metas of some records of a block, empty where there is none."""
    assert block.meta_lens is not None
    places = np.array(seqs, np.int64) - block.first_seq
    lens = block.meta_lens[places].tolist()
    ends = (block.ends[places].astype(np.int64) - block.data_lens[places] - len('},"data":')).tolist()
    text = block.text
    return [bytes(text[end - length : end]) if length else b"" for end, length in zip(ends, lens, strict=True)]


def _priorities(metas: Sequence[bytes]) -> list[int]:
    return [_priority(kept.priority) for kept in _kept_decoder.decode(_array(metas))]


def _array(metas: Sequence[bytes]) -> bytes:
    return b"[%b]" % b",".join([meta or b"{}" for meta in metas])


@lru_cache(maxsize=4096)
def _priority(text: str) -> int:
    return _whole(text, I64_MIN, I64_MAX) or 0


def _whole(text: str | None, low: int, high: int) -> int | None:
    """The number that a text is; None when it is none, or not within bounds."""
    if text is None or not _NUMBER.fullmatch(text):
        return None
    number = int(text)
    return number if low <= number <= high else None
