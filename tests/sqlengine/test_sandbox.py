"""A query has nothing at hand but what it was given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from topics.sqlengine.querymessages import ERROR_CHARS_MAX
from topics.sqlengine.sandbox import PREPARING, Sandbox, failure_of, is_broken


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


def test_error_says_where_in_the_text_it_is(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error) as raised:
        connection.execute("SELECT 1,\n missing")
    failure = failure_of(raised.value)
    assert (failure.kind, failure.position, failure.length) == ("sql", 11, len("missing"))
    assert 'Referenced column "missing" was not found' in failure.message


def test_prepared_text_is_shorter_than_what_was_prepared(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error) as raised:
        connection.execute(f"{PREPARING}SELECT missing")
    assert failure_of(raised.value, prepared=True).position == len("SELECT ")


def test_query_over_the_memory_limit_is_a_memory_failure(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error) as raised:
        connection.execute("SELECT * FROM range(50000000) t(i) ORDER BY hash(i)").fetchall()
    assert failure_of(raised.value).kind == "memory"


def test_refused_allocations_are_memory_failures() -> None:
    assert failure_of(MemoryError()).kind == "memory"
    assert failure_of(pa.ArrowMemoryError("malloc of size 64 failed")).kind == "memory"
    assert failure_of(OSError("Out of Memory Error: Allocation failure")).kind == "memory"


def test_answer_that_arrow_has_no_type_for_is_the_fault_of_the_query() -> None:
    assert failure_of(pa.ArrowInvalid("Recursion level in ArrowSchema struct exceeded")).kind == "sql"
    assert failure_of(TypeError("our own bug")).kind == "internal"


def test_interrupted_query_says_so(connection: duckdb.DuckDBPyConnection) -> None:
    assert failure_of(duckdb.InterruptException("INTERRUPT")).kind == "interrupted"


@pytest.mark.parametrize(("error", "broken"), [(duckdb.InternalException, True), (duckdb.BinderException, False)])
def test_database_is_broken_after_an_internal_error_only(error: type[Exception], broken: bool) -> None:
    assert is_broken(error("x")) is broken


@pytest.mark.parametrize(
    ("said", "message"),
    [("boom", "boom"), ("{boom", "Invalid Input Error: {boom")],
)
def test_error_without_a_place_keeps_its_message(
    connection: duckdb.DuckDBPyConnection, said: str, message: str
) -> None:
    with pytest.raises(duckdb.Error) as raised:
        connection.execute(f"SELECT error('{said}')")
    failure = failure_of(raised.value)
    assert (failure.kind, failure.message, failure.position) == ("sql", message, None)


def test_long_error_is_cut() -> None:
    assert len(failure_of(duckdb.BinderException("x" * 100_000)).message) == ERROR_CHARS_MAX
