"""The statements of an outbox in PostgreSQL 14 or later. Pure: names in, text out.

One outbox and one trigger function a schema, beside the tables they are about. The function belongs to whoever installs
it and runs with their rights, so that whoever writes the table needs none on the outbox.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from topics.cdc.outbox import OUTBOX

FUNCTION = "topics_capture"
ROW_TRIGGER = "topics_capture_rows"
TRUNCATE_TRIGGER = "topics_capture_truncate"


@dataclass(frozen=True, slots=True)
class TableName:
    schema: str
    table: str

    @classmethod
    def of(cls, text: str) -> TableName:
        """`messages` is in the schema `public`."""
        schema, dot, table = text.rpartition(".")
        return cls(schema if dot else "public", table)

    @property
    def text(self) -> str:
        """As it stands in the outbox."""
        return f"{self.schema}.{self.table}"

    @property
    def quoted(self) -> str:
        return f"{name(self.schema)}.{name(self.table)}"

    @property
    def outbox(self) -> str:
        return f"{name(self.schema)}.{name(OUTBOX)}"


def name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A string that means the same whatever `standard_conforming_strings` is."""
    escaped = text.replace("'", "''").replace("\\", "\\\\")
    return f"E'{escaped}'" if "\\" in text else f"'{escaped}'"


def install(table: TableName, key: Sequence[str]) -> list[str]:
    """Everything that is needed, in order; each may be run again."""
    outbox, function = table.outbox, f"{name(table.schema)}.{name(FUNCTION)}"
    arguments = ", ".join(map(literal, (table.text, *key)))
    return [
        f"""CREATE TABLE IF NOT EXISTS {outbox} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
    ts bigint NOT NULL DEFAULT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    table_name text NOT NULL,
    op text NOT NULL CHECK (op IN ('insert', 'update', 'delete')),
    key jsonb NOT NULL,
    before jsonb,
    after jsonb
)""",
        f"CREATE INDEX IF NOT EXISTS {name(OUTBOX + '_place')} ON {outbox} (table_name, id)",
        _function(function, outbox),
        f"CREATE OR REPLACE TRIGGER {name(ROW_TRIGGER)} AFTER INSERT OR UPDATE OR DELETE ON {table.quoted} "
        f"FOR EACH ROW EXECUTE FUNCTION {function}({arguments})",
        f"CREATE OR REPLACE TRIGGER {name(TRUNCATE_TRIGGER)} BEFORE TRUNCATE ON {table.quoted} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {function}({arguments})",
    ]


def _function(function: str, outbox: str) -> str:
    # The table's own name is an argument: of a partition's trigger TG_TABLE_NAME is the partition.
    return f"""CREATE OR REPLACE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $topics$
DECLARE
    known text[] := TG_ARGV[1:TG_NARGS - 1];
    old_row jsonb;
    new_row jsonb;
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        EXECUTE format('INSERT INTO {outbox.replace("'", "''").replace("%", "%%")} (table_name, op, key, before) '
            'SELECT %L, ''delete'', (SELECT jsonb_object_agg(part, to_jsonb(r) -> part) FROM unnest(%L::text[]) part), '
            'to_jsonb(r) FROM %I.%I r', TG_ARGV[0], known, TG_TABLE_SCHEMA, TG_TABLE_NAME);
        RETURN NULL;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        old_row := to_jsonb(OLD);
    END IF;
    IF TG_OP <> 'DELETE' THEN
        new_row := to_jsonb(NEW);
    END IF;
    INSERT INTO {outbox} (table_name, op, key, before, after) VALUES (
        TG_ARGV[0],
        lower(TG_OP),
        (SELECT jsonb_object_agg(part, coalesce(new_row, old_row) -> part) FROM unnest(known) part),
        old_row,
        new_row
    );
    RETURN NULL;
END
$topics$"""


def uninstall(table: TableName) -> list[str]:
    """What belongs to one table."""
    return [
        f"DROP TRIGGER IF EXISTS {name(trigger)} ON {table.quoted}" for trigger in (ROW_TRIGGER, TRUNCATE_TRIGGER)
    ] + [f"DELETE FROM {table.outbox} WHERE table_name = {literal(table.text)}"]


def uninstall_schema(schema: str) -> list[str]:
    """What all tables of a schema share: when the last of them is gone."""
    return [
        f"DROP FUNCTION IF EXISTS {name(schema)}.{name(FUNCTION)}()",
        f"DROP TABLE IF EXISTS {name(schema)}.{name(OUTBOX)}",
    ]


INSTALLED = """SELECT n.nspname, c.relname, t.tgargs, t.tgenabled IN ('O', 'A')
    AND EXISTS (SELECT FROM pg_trigger e
        WHERE e.tgrelid = c.oid AND e.tgname = %s AND e.tgfoid = t.tgfoid AND e.tgenabled IN ('O', 'A'))
    AND NOT EXISTS (SELECT FROM pg_partition_tree(c.oid) part JOIN pg_trigger e ON e.tgrelid = part.relid
        WHERE e.tgname = t.tgname AND e.tgfoid = t.tgfoid AND e.tgenabled NOT IN ('O', 'A'))
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_proc p ON p.oid = t.tgfoid
WHERE p.proname = %s AND t.tgname = %s AND t.tgparentid = 0 ORDER BY 1, 2"""
"""Schema, table and arguments of each row trigger; those that a partition has from its table are their table's. Last,
whether all of them fire, and the one for TRUNCATE."""

COLUMNS = """SELECT a.attname, format_type(a.atttypid, NULL), a.atttypmod, a.attnotnull
FROM pg_attribute a WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""

PRIMARY_KEY = """SELECT a.attname FROM pg_index i
JOIN unnest(i.indkey) WITH ORDINALITY AS part(attnum, place) ON true
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = part.attnum
WHERE i.indrelid = %s::regclass AND i.indisprimary ORDER BY part.place"""


SEQUENCE = "SELECT pg_get_serial_sequence(%s, 'id')"
"""What gives the ids of an outbox."""


def last_given(sequence: str) -> str:
    """The highest id that any transaction has got, seen or not: a sequence is not part of a snapshot."""
    return f"SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {sequence}"


NEXT_TRANSACTION = "SELECT pg_current_xact_id()::text::bigint"
"""Above those of all transactions that have one by now. A snapshot would not do: its end is the last that *ended*."""

OLDEST_RUNNING = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
"""All transactions below have ended."""


def changes(outbox: str) -> str:
    """Parameters: table, id, the snapshot twice or null, id, limit."""
    return (
        f"SELECT id, xid::text::bigint, ts, op, key::text, before::text, after::text FROM {outbox} "
        "WHERE table_name = %s AND id > %s "
        "AND (%s::pg_snapshot IS NULL OR NOT pg_visible_in_snapshot(xid, %s::pg_snapshot)) AND id <= %s "
        "ORDER BY id LIMIT %s"
    )


def rows(table: TableName) -> str:
    return f"SELECT to_jsonb(r)::text FROM {table.quoted} r"


def waiting(outbox: str) -> str:
    """How many changes of a table wait, and the time of the first."""
    return f"SELECT count(*), min(ts) FROM {outbox} WHERE table_name = %s"


def prune(outbox: str) -> str:
    return f"DELETE FROM {outbox} WHERE table_name = %s AND id <= %s"


_TYPES = {
    "bigint": "bigint",
    "integer": "int",
    "smallint": "smallint",
    "boolean": "boolean",
    "real": "float",
    "double precision": "double",
    "date": "date",
    "timestamp without time zone": "timestamp_ntz",
    "timestamp with time zone": "timestamp",
}


def spark_type(kind: str, modifier: int) -> str:
    """The type of Spark that holds what JSON has of a column. What Spark has no type for is text, as in JSON."""
    if kind == "numeric" and modifier >= 4:
        precision, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
        if precision <= 38 and scale <= precision:
            return f"decimal({precision},{scale})"
    return _TYPES.get(kind, "string")
