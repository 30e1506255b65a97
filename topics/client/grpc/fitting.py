"""Messages of the contract, made of what a program gave: what does not fit into a field is refused by its name.

A message is made as ever, and only when that fails the fields are looked at one by one, for the one that does not fit.
It is named as the program calls it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message_factory import GetMessageClass

from topics.errors import InvalidRequest

MS_MAX: Final = 2**53
"""A time of so many milliseconds fits into every form that it takes on its way."""
_SHOWN_CHARS: Final = 100
_MISFITS: Final = (TypeError, ValueError)
_NAMES: Final = {
    "partition_id": "partition",
    "partition_ids": "partitions",
    "partition_key": "key",
    "acks": "leases",
    "nacks": "leases",
    "extensions": "leases",
}
"""What the client calls a field otherwise than the contract."""
_EXPECTED: Final = {
    FieldDescriptor.CPPTYPE_INT32: f"a whole number from {-(2**31)} to {2**31 - 1}",
    FieldDescriptor.CPPTYPE_INT64: f"a whole number from {-(2**63)} to {2**63 - 1}",
    FieldDescriptor.CPPTYPE_UINT32: f"a whole number from 0 to {2**32 - 1}",
    FieldDescriptor.CPPTYPE_UINT64: f"a whole number from 0 to {2**64 - 1}",
    FieldDescriptor.CPPTYPE_BOOL: "true or false",
    FieldDescriptor.CPPTYPE_STRING: "text in UTF-8",
    FieldDescriptor.CPPTYPE_MESSAGE: "names and values, text in UTF-8",
}


def fitting(kind: Any, place: str = "", /, **fields: Any) -> Any:
    """A message of this kind; `place` stands before the names of its fields, like `messages[3].`."""
    try:
        return kind(**fields)
    except _MISFITS:
        _refuse(kind, place, fields)
        raise


def whole_ms(name: str, value: Any) -> int:
    """A time in milliseconds, when it is one."""
    expected = not_whole(value, MS_MAX)
    if expected:
        raise unfit(name, value, expected)
    return int(value)


def not_whole(value: object, most: int) -> str:
    """What it should be; empty when it is."""
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
    return "" if fits else f"a whole number from 0 to {most}"


def unfit(name: str, value: object, expected: str) -> InvalidRequest:
    shown = _shown(value)
    return InvalidRequest(f"{name} must be {expected}, not {shown}", field=name, value=shown, expected=expected)


def _shown(value: object) -> str:
    """The value, or its beginning."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"


def _refuse(kind: Any, place: str, fields: Mapping[str, Any]) -> None:
    """Raise for the first field that does not fit."""
    for name, value in fields.items():
        said = kind.DESCRIPTOR.fields_by_name[name]
        where = f"{place}{_NAMES.get(name, name)}"
        if _fits(kind, name, value):
            continue
        items = list(value) if isinstance(value, list | tuple) else []
        for index, item in enumerate(items):
            if isinstance(item, Mapping):
                _refuse(GetMessageClass(said.message_type), f"{where}[{index}].", item)
            elif not _fits(kind, name, [item]):
                raise unfit(f"{where}[{index}]", item, _EXPECTED[said.cpp_type])
        raise unfit(where, value, _EXPECTED[said.cpp_type])


def _fits(kind: Any, name: str, value: Any) -> bool:
    try:
        kind(**{name: value})
    except _MISFITS:
        return False
    return True
