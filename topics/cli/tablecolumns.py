"""The columns of a table, looked up where it is: what `topics table register` tells the server."""

from __future__ import annotations

import json
from typing import Any

from topics.cdc.opening import opened
from topics.errors import InvalidRequest, NotFound, NotInstalled
from topics.tablemodel import TableColumn, TableConfig, TableFormat

Columns = tuple[TableColumn, ...]

_DELTA_TYPES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
"""What Delta calls otherwise than Spark."""
_ARROW_TYPES = {
    "int64": "bigint",
    "int32": "int",
    "int16": "smallint",
    "int8": "tinyint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "float": "float",
    "double": "double",
    "bool": "boolean",
    "string": "string",
    "large_string": "string",
    "binary": "binary",
    "large_binary": "binary",
    "date32[day]": "date",
    "null": "string",
}


def look(table: str, config: TableConfig, location: str) -> Columns:
    """The columns of a table at a location; an error when there is none."""
    if config.format is TableFormat.DELTA:
        return _delta(location)
    if config.format.is_database:
        with opened(location, config.format) as outbox:
            return outbox.columns(config.source or table)
    return _files(config, location)


def has_change_feed(location: str) -> bool:
    """Whether a Delta table says what changed in each version."""
    configuration = _delta_table(location).metadata().configuration
    return bool(configuration.get("delta.enableChangeDataFeed") == "true")


# ---- Delta


def _delta(location: str) -> Columns:
    fields = json.loads(_delta_table(location).schema().to_json())["fields"]
    return tuple(TableColumn(field["name"], delta_type(field["type"]), field["nullable"]) for field in fields)


def _delta_table(location: str) -> Any:
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError
    except ImportError:
        raise NotInstalled("to look at a Delta table: pip install 'topics[spark]', or say --no-look") from None
    try:
        return DeltaTable(location)
    except TableNotFoundError:
        raise NotFound(f"there is no Delta table at {location}; make it first, or say --no-look") from None


def delta_type(kind: Any) -> str:
    """A type in the schema of a Delta table, in the words of Spark."""
    if isinstance(kind, str):
        return _DELTA_TYPES.get(kind, kind)
    match kind["type"]:
        case "array":
            return f"array<{delta_type(kind['elementType'])}>"
        case "map":
            return f"map<{delta_type(kind['keyType'])},{delta_type(kind['valueType'])}>"
        case _:
            fields = [f"{field['name']}:{delta_type(field['type'])}" for field in kind["fields"]]
            return f"struct<{','.join(fields)}>"


# ---- files


def _files(config: TableConfig, location: str) -> Columns:
    try:
        import pyarrow as pa
        import pyarrow.dataset as ds
    except ImportError:
        raise NotInstalled("to look at files: pip install 'topics[arrow]', or say --no-look") from None
    try:
        found = ds.dataset(location, format=_arrow_format(config))
        schema = found.schema
    except FileNotFoundError:
        raise NotFound(f"there is no directory {location}; make it first, or say --no-look") from None
    except (pa.ArrowInvalid, OSError) as error:
        reason = str(error).split("\n")[0]
        raise InvalidRequest(f"the files in {location} are not understood as {config.format}: {reason}") from None
    if not found.files:
        raise NotFound(f"there are no files in {location} to look at: put one there, or say --no-look")
    return tuple(TableColumn(field.name, arrow_type(field.type), field.nullable) for field in schema)


def _arrow_format(config: TableConfig) -> Any:
    import pyarrow.csv as csv
    import pyarrow.dataset as ds

    if config.format is not TableFormat.CSV:
        return config.format.value
    header = config.options.get("header", "false").lower() == "true"
    return ds.CsvFileFormat(
        parse_options=csv.ParseOptions(delimiter=config.options.get("sep", ",")),
        read_options=csv.ReadOptions() if header else csv.ReadOptions(autogenerate_column_names=True),
    )


def arrow_type(kind: Any) -> str:
    """A type of Arrow in the words of Spark."""
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"array<{arrow_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{arrow_type(kind.key_type)},{arrow_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{arrow_type(field.type)}' for field in kind)}>"
    return _ARROW_TYPES.get(str(kind), "string")
