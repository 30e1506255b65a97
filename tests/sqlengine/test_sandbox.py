"""A query has nothing at hand but what it was given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from topics.errors import InvalidSql, QueryTooExpensive
from topics.sql.grammar import Origin
from topics.sql.query import Spliced
from topics.sqlengine.sandbox import Sandbox, refusal


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    sandbox = Sandbox(32 << 20)
    connection = sandbox.connect()
    yield connection
    connection.close()
    sandbox.close()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM read_blob('{file}')",
        "SELECT * FROM read_json('{file}')",
        "SELECT * FROM read_parquet('{file}')",
        "SELECT * FROM '{file}'",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM sniff_csv('{file}')",
        "SELECT * FROM read_csv('http://127.0.0.1:9/x.csv')",
        "COPY (SELECT 1) TO '{file}.out'",
        "EXPORT DATABASE '{file}.out'",
        "IMPORT DATABASE '{file}'",
        "ATTACH '{file}.db' AS other",
        "INSTALL httpfs",
        "LOAD httpfs",
        "LOAD '{file}'",
        "CREATE SECRET (TYPE s3)",
        "SET memory_limit = '10GB'",
        "SET GLOBAL enable_external_access = true",
        "SET temp_directory = '/tmp'",
        "SET python_enable_replacements = true",
        "RESET lock_configuration",
        "PRAGMA enable_profiling",
        "SELECT * FROM visible_to_python",
        "SELECT getenv('HOME')",
    ],
)
def test_nothing_leads_out(connection: duckdb.DuckDBPyConnection, tmp_path: Path, text: str) -> None:
    file = tmp_path / "file.csv"
    file.write_text("a,b\n1,2\n")
    visible_to_python = pa.table({"a": [1]})
    with pytest.raises(duckdb.Error):
        connection.execute(text.format(file=file)).fetchall()
    assert [path.name for path in tmp_path.iterdir()] == ["file.csv"] and visible_to_python.num_rows == 1


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("enable_external_access", False),
        ("lock_configuration", True),
        ("python_enable_replacements", False),
        ("autoload_known_extensions", False),
        ("autoinstall_known_extensions", False),
        ("allow_community_extensions", False),
        ("temp_directory", ""),
        ("threads", 1),
        ("TimeZone", "UTC"),
    ],
)
def test_every_connection_is_locked_in(connection: duckdb.DuckDBPyConnection, setting: str, value: object) -> None:
    assert connection.execute(f"SELECT current_setting('{setting}')").fetchall() == [(value,)]


def test_no_connection_sees_what_another_was_given() -> None:
    sandbox = Sandbox(32 << 20)
    one, other = sandbox.connect(), sandbox.connect()
    one.register("given", pa.table({"a": [1]}))
    assert one.execute("SELECT a FROM given").fetchall() == [(1,)]
    with pytest.raises(duckdb.CatalogException):
        other.execute("SELECT a FROM given")
    one.close()
    other.close()
    sandbox.close()


def test_an_error_says_where_in_the_original(connection: duckdb.DuckDBPyConnection) -> None:
    text = "SELECT 1,\n missing"
    with pytest.raises(duckdb.Error) as raised:
        connection.execute(text)
    error = refusal(raised.value, Origin(f"SHOW TOPICS;  {text}", 14, 2), Spliced(text, [], []), 1)
    assert isinstance(error, InvalidSql)
    assert error.detail == {"line": 2, "column": 2, "expected": [], "statement": 2}


def test_what_needs_too_much_memory_is_refused(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error) as raised:
        connection.execute("SELECT * FROM range(50000000) t(i) ORDER BY hash(i)").fetchall()
    error = refusal(raised.value, Origin("", 0, 1), Spliced("", [], []), 7)
    assert isinstance(error, QueryTooExpensive) and error.detail == {"limit": "memory_bytes", "max": 7}


@pytest.mark.parametrize(
    ("said", "message"),
    [("boom", "boom"), ("{boom", "Invalid Input Error: {boom")],
)
def test_an_error_without_a_place_says_what_it_is(
    connection: duckdb.DuckDBPyConnection, said: str, message: str
) -> None:
    text = f"SELECT error('{said}')"
    with pytest.raises(duckdb.Error) as raised:
        connection.execute(text)
    error = refusal(raised.value, Origin(text, 0, 1), Spliced(text, [], []), 1)
    assert isinstance(error, InvalidSql) and (error.message, error.detail) == (message, {})
