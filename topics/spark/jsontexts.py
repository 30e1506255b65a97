"""Values as JSON text, a column at a time: what a DataFrame writes as `data` or `meta`.

Text is JSON already and goes out as it is. All else is put together from the texts of its parts, column by column:
a struct is its fields with their names between them, an array its elements with commas. Nulls are kept. Times are in
UTC and ISO 8601, bytes in base64, numbers that JSON has not are null. Only maps are made row by row.
"""

from __future__ import annotations

import base64
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_NULL: Final = "null"
_CONTROLS: Final = "[\\x00-\\x1f]"
_WHOLE: Final = "^-?[0-9]+$"
_TIME: Final = "%Y-%m-%dT%H:%M:%S"
_encoder = msgspec.json.Encoder(decimal_format="number")


def json_texts(column: Any) -> Any:
    """A column of any type as JSON text; a null is `null`."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        return column.cast(pa.string()).fill_null(_NULL)
    return _texts(column)


def _texts(values: Any) -> Any:
    """The JSON of each value, in which a string is a string."""
    kind = values.type
    if pa.types.is_null(kind):
        return pa.repeat(pa.scalar(_NULL), len(values))
    if pa.types.is_struct(kind):
        texts = _objects(values)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        texts = _arrays(values)
    elif pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        texts = values.cast(pa.string())
    elif pa.types.is_floating(kind):
        texts = _floats(values)
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        texts = _strings(values.cast(pa.string()))
    elif pa.types.is_date(kind):
        texts = _quoted(values.cast(pa.string()))
    elif pa.types.is_timestamp(kind):
        zone = "" if kind.tz is None else "Z"
        moments = values if kind.tz is None else values.cast(pa.timestamp(kind.unit, "UTC"))
        texts = _quoted(pc.strftime(moments, _TIME + zone))
    else:
        rows = values.to_pylist(maps_as_pydicts="strict")
        texts = pa.array([_encoder.encode(_told(row)).decode() for row in rows], pa.string())
    return pc.if_else(values.is_valid(), texts, _NULL)


def _objects(values: Any) -> Any:
    parts: list[Any] = []
    for field, column in zip(values.type, values.flatten(), strict=True):
        name = msgspec.json.encode(field.name).decode()
        parts += [f"{',' if parts else '{'}{name}:", _texts(column)]
    if not parts:
        return pa.repeat(pa.scalar("{}"), len(values))
    return pc.binary_join_element_wise(*parts, "}", "")


def _arrays(values: Any) -> Any:
    lens = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    ends = np.concatenate(([0], np.cumsum(lens, dtype=np.int64)))
    elements = pa.LargeListArray.from_arrays(pa.array(ends), _texts(values.flatten()))
    return pc.binary_join_element_wise("[", pc.binary_join(elements, ","), "]", "")


def _floats(values: Any) -> Any:
    texts = values.cast(pa.string())
    texts = pc.if_else(pc.match_substring_regex(texts, _WHOLE), pc.binary_join_element_wise(texts, ".0", ""), texts)
    return pc.if_else(pc.is_finite(values), texts, _NULL)


def _strings(values: Any) -> Any:
    escaped = pc.replace_substring(pc.replace_substring(values, "\\", "\\\\"), '"', '\\"')
    texts = _quoted(escaped)
    unusual = pc.fill_null(pc.match_substring_regex(values, _CONTROLS), False)
    if not pc.any(unusual).as_py():
        return texts
    spelled = [msgspec.json.encode(value).decode() for value in values.filter(unusual).to_pylist()]
    return pc.replace_with_mask(texts, unusual, pa.array(spelled, pa.string()))


def _quoted(texts: Any) -> Any:
    return pc.binary_join_element_wise('"', texts, '"', "")


def _told(value: Any) -> Any:
    """A value as JSON can say it."""
    match value:
        case dict():
            return {_name(key): _told(each) for key, each in value.items()}
        case list():
            return [_told(each) for each in value]
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return value


def _name(key: Any) -> str:
    """The key of a map as the name of a field."""
    return key if isinstance(key, str) else msgspec.json.encode(_told(key)).decode().strip('"')
