"""What a record of a change holds, as Spark SQL over one change: its data, its key, its tag.

The data is the envelope that CONSUME takes apart (`source_table`, `op`, `ts`, `payload_mode`, `payload`, `key`,
`message_id`), put together as text, because the payloads of several routes of one query have different shapes:

    key     {"id": 7}                                     the key columns
    full    {"id": 7, "body": "hello", "at": null}        the row, of a DELETE the last one
    diff    {"body": {"old": "hi", "new": "hello"}}       the columns that changed; of an insert or delete all of them

Nulls are kept, times are in UTC with microseconds. Everything here is pure text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from topics.sql.envelope import CHANGE_TYPE
from topics.sql.sparktext import spark_name as quoted
from topics.sql.sparktext import spark_string as literal

KEY: Final = "key"
FULL: Final = "full"
DIFF: Final = "diff"
ROW: Final = "_topics_row"
POSITION: Final = "_topics_position"
TIME: Final = "_topics_ts"
BEFORE_TEXT: Final = "_topics_before_text"
AFTER_TEXT: Final = "_topics_after_text"
"""With databases: the JSON of the two rows as it was written."""
TRACE: Final = "traceparent"
"""A column of this name travels in the meta of a record, as the trace context that it is."""


_OPTIONS: Final = ", ".join(
    literal(text)
    for text in (
        "ignoreNullFields",
        "false",
        "timestampFormat",
        "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
        "timestampNTZFormat",
        "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    )
)


def json_of(struct: str) -> str:
    """A struct as JSON, with its nulls."""
    return f"to_json({struct}, map({_OPTIONS}))"


def struct_of(columns: Sequence[str], row: str) -> str:
    fields = ", ".join(f"{literal(name)}, {row}.{quoted(name)}" for name in columns)
    return f"named_struct({fields})"


def key_json(key: Sequence[str]) -> str:
    return json_of(struct_of(key, ROW)) if key else literal("null")


def key_text(key: Sequence[str]) -> str:
    """The key as the text that is the tag of a record, and says which partition it goes to unless a route does."""
    if not key:
        return "CAST(NULL AS STRING)"
    texts = [f"CAST({ROW}.{quoted(name)} AS STRING)" for name in key]
    return texts[0] if len(texts) == 1 else f"concat_ws(',', {', '.join(texts)})"


def spread_text(expressions: str, count: int) -> str:
    """What rows are spread over partitions by, as text: that of one value, or of several with commas between."""
    fields = ", ".join(f"c{number}: STRING" for number in range(count))
    texts = [f"CAST(struct({expressions}) AS STRUCT<{fields}>).c{number}" for number in range(count)]
    return texts[0] if count == 1 else f"concat_ws(',', {', '.join(texts)})"


def payload(mode: str, operation: str, key: Sequence[str], columns: Sequence[str], has_texts: bool) -> str:
    """The payload of a route, as JSON."""
    if mode == KEY:
        return key_json(key)
    if mode == FULL:
        # What a database wrote is the row itself, with every digit it has.
        text = BEFORE_TEXT if operation == "delete" else AFTER_TEXT
        return text if has_texts else json_of(ROW)
    changed = []
    for name in columns:
        old, new = f"before.{quoted(name)}", f"after.{quoted(name)}"
        both = json_of(f"named_struct('old', {old}, 'new', {new})")
        member = f"concat({literal(msgspec.json.encode(name).decode() + ':')}, {both})"
        if operation == "update":
            texts = [json_of(f"named_struct('v', {each})") for each in (old, new)]
            member = f"CASE WHEN {texts[0]} <> {texts[1]} THEN {member} END"
        changed.append(member)
    return f"concat('{{', concat_ws(',', {', '.join(changed)}), '}}')"


def message_id(table: str) -> str:
    """The id of a change, as JSON: the table, and the place of the change in it."""
    begin = msgspec.json.encode(table).decode()[:-1] + "@"
    return f"concat({literal(begin)}, {POSITION}, '\"')"


def envelope(table: str, operation: str, mode: str, payload_json: str, key: Sequence[str]) -> str:
    """The data of a record, as JSON."""
    begin = f'{{"source_table":{_json(table)},"op":{_json(operation)},"payload_mode":{_json(mode)},"ts":'
    parts = [
        literal(begin),
        f"CAST({TIME} AS STRING)",
        literal(',"payload":'),
        payload_json,
        literal(',"key":'),
        key_json(key),
        literal(',"message_id":'),
        message_id(table),
        literal("}"),
    ]
    return f"concat({', '.join(parts)})"


def complaint(
    table: str, operation: str, topic: str, reasons: Sequence[tuple[str, str]], key: Sequence[str], has_texts: bool
) -> str:
    """The data of a record that tells of a change which could not be evaluated. `reasons` are a condition each, and
    what is to be said when it holds."""
    cases = " ".join(f"WHEN {when} THEN {literal(_json(reason))}" for when, reason in reasons)
    begin = f'{{"source_table":{_json(table)},"op":{_json(operation)},"topic":{_json(topic)},"ts":'
    text = f"coalesce({AFTER_TEXT}, {BEFORE_TEXT}, 'null')" if has_texts else json_of(ROW)
    parts = [
        literal(begin),
        f"CAST({TIME} AS STRING)",
        literal(',"reason":'),
        f"CASE {cases} END",
        literal(',"row":'),
        text,
        literal(',"key":'),
        key_json(key),
        literal(',"message_id":'),
        message_id(table),
        literal("}"),
    ]
    return f"concat({', '.join(parts)})"


def meta(columns: Sequence[str]) -> str:
    """The meta of a record: that it is a change, and the trace it belongs to if the row has one."""
    plain = literal(_json({"content-type": CHANGE_TYPE}))
    if TRACE not in columns:
        return plain
    traced = json_of(f"named_struct('content-type', {literal(CHANGE_TYPE)}, '{TRACE}', CAST({ROW}.{TRACE} AS STRING))")
    return f"CASE WHEN {ROW}.{TRACE} IS NULL THEN {plain} ELSE {traced} END"


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
