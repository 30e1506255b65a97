"""Records on their way out: bytes become text, times numbers, and what a record is part of goes into its meta.

Data is JSON. Bytes are sent as base64 text with `meta.$encoding = "base64"` and their content type in
`meta.content-type`; whoever reads them through this package gets bytes again (`topics.model.parse_records`). When a
trace is under way, each record carries its context in `meta.traceparent` (`tracing.py`).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from topics.client import tracing
from topics.client.fields import RecordFields, check_records
from topics.client.moment import moment_ms
from topics.errors import InvalidRequest
from topics.model import BASE64, CONTENT_TYPE, ENCODING

BYTES_TYPE: Final = "application/octet-stream"
"""The content type of bytes that have none of their own."""


def prepared(records: Iterable[RecordFields]) -> Sequence[Mapping[str, Any]]:
    """Records as a transport takes them."""
    checked = check_records(records)
    context = tracing.current()
    if not context and not any(map(_is_special, checked)):
        return checked
    return [_prepare(record, index, context) for index, record in enumerate(checked)]


def _is_special(record: object) -> bool:
    return isinstance(record, Mapping) and (
        "content_type" in record
        or "not_before" in record
        or isinstance(record.get("data"), bytes | bytearray | memoryview)
    )


def _prepare(record: Any, index: int, context: Mapping[str, str]) -> Any:
    if not isinstance(record, Mapping):
        return record
    own = dict(record)
    content_type = own.pop("content_type", None)
    meta: dict[str, str] = dict(context)
    data = own.get("data")
    if isinstance(data, bytes | bytearray | memoryview):
        own["data"] = b64encode(data).decode()
        meta[ENCODING] = BASE64
        content_type = content_type or BYTES_TYPE
    if content_type is not None:
        if not isinstance(content_type, str):
            field = f"records[{index}].content_type"
            raise InvalidRequest(f"{field} must be a string, not {content_type!r}", field=field, expected="string")
        meta[CONTENT_TYPE] = content_type
    if "not_before" in own:
        own["not_before"] = moment_ms(own["not_before"], f"records[{index}].not_before")
    given = own.get("meta")
    # What is no mapping is left as it is, for the engine to refuse.
    if given is None or isinstance(given, Mapping):
        own["meta"] = {**meta, **(given or {})} or None
    return own
