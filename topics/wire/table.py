"""Registered tables in JSON: the body that registers one, and what is told of one.

On the wire a table is one flat object, its config beside when it came and its routes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from topics.tablemodel import TableColumn, TableConfig, TableFormat, TableState
from topics.wire import json

CONFIG_FIELDS = TableConfig.__struct_fields__
SUMMARY_FIELDS = ("table", "format", "location", "location_env", "source", "key", "created_ts", "changed_ts")


class _Body(msgspec.Struct, kw_only=True):
    """As a client says it: null is the same as leaving a field out."""

    format: TableFormat
    location: str | None = None
    location_env: str | None = None
    source: str | None = None
    key: list[str] | None = None
    columns: list[TableColumn] | None = None
    options: dict[str, str] | None = None


_decoder = msgspec.json.Decoder(_Body)


def decode_table(body: bytes) -> TableConfig:
    """The table that a body describes, or `InvalidRequest` naming the wrong field. Unknown fields are ignored."""
    parsed = json.decode(_decoder, body or b"{}")
    json.refuse_repeated_keys(body, lambda root: [("", root)])
    said = {name: value for name in CONFIG_FIELDS if (value := getattr(parsed, name)) is not None}
    lists = {name: tuple(value) for name, value in said.items() if isinstance(value, list)}
    return TableConfig(**(said | lists))


def table_fields(state: TableState) -> dict[str, object]:
    """All of a table."""
    fields: dict[str, object] = {"table": state.table}
    fields |= {name: getattr(state.config, name) for name in CONFIG_FIELDS}
    return fields | {"created_ts": state.created_ts, "changed_ts": state.changed_ts, "routes": state.routes}


def table_summary(state: TableState) -> dict[str, object]:
    """What a list shows of it."""
    fields = table_fields(state)
    return {name: fields[name] for name in SUMMARY_FIELDS} | {"route_count": len(state.routes)}


def table_state(fields: dict[str, Any]) -> TableState:
    """A table out of what was told of it; `msgspec.ValidationError` when it is none."""
    config = {name: fields[name] for name in CONFIG_FIELDS if name in fields}
    rest = {name: value for name, value in fields.items() if name not in config}
    return msgspec.convert(rest | {"config": config}, TableState)
