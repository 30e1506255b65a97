from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.rig import Command
from topics.cli import build_app
from topics.cli.tablecolumns import arrow_type, delta_type


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    path = tmp_path / "chat.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, body TEXT)")
    connection.close()
    return path


def test_a_table_is_registered_listed_shown_and_forgotten(topics: Command, topic: str, chat: Path) -> None:
    (made,) = topics.good("table", "register", topic, "--sqlite", chat, "--source", "messages", "--key", "id")
    assert (made["created"], made["table"], made["format"], made["location"]) == (True, topic, "sqlite", str(chat))
    assert [column["name"] for column in made["columns"]] == ["id", "body"]
    (listed,) = topics.good("table", "ls", topic)
    assert topics.good("table", "show", topic) == [listed] and listed["key"] == ["id"]
    (again,) = topics.good(
        "table", "register", topic, "--files", "/f", "--format", "csv", "--option", "sep=;", "--no-look"
    )
    assert (again["created"], again["format"], again["options"]) == (False, "csv", {"sep": ";"})
    assert topics.good("table", "rm", topic) == [{"table": topic, "deleted": True}]
    said = topics("table", "show", topic)
    assert said.code == 3 and "`topics table register` makes it known" in said.err
    assert topics("table", "rm", topic).code == 3


def test_for_people(topics: Command, topic: str, chat: Path) -> None:
    said = topics("table", "register", topic, "--sqlite", chat, "--source", "messages", "--key", "id", "--no-json")
    assert said.out.strip() == f"{topic} is registered, with 2 known columns"
    topics.good(
        "sql", "-c", f'CREATE TOPIC "{topic}"; ALTER TOPIC "{topic}" ADD SOURCE "{topic}" ON INSERT WHERE (id > 1)'
    )
    said = topics("table", "show", topic, "--no-json")
    assert "body string" in said.out and f"insert → {topic} (key) where id > 1" in said.out
    said = topics("table", "ls", topic, "--no-json")
    assert "sqlite" in said.out and topic in said.out
    assert "`topics table register" in topics("table", "ls", "zzz-nothing", "--no-json").out
    said = topics("table", "rm", topic)
    assert said.code == 4 and "DROP SOURCE" in said.err


@pytest.mark.parametrize(
    ("flags", "code", "sentence"),
    [
        ([], 2, "say where the table is"),
        (["--delta", "/a", "--sqlite", "/b"], 2, "say where the table is"),
        (["--delta", "/nothing/there", "--key", "id"], 3, "no Delta table"),
        (["--sqlite", "/nothing/there", "--key", "id"], 5, "cannot be opened"),
        (["--postgres", "postgresql://a:b@c/d", "--key", "id"], 2, "--dsn-env"),
        (["--files", "/nothing/there"], 3, "no directory"),
        (["--files", "/f", "--option", "x"], 2, "NAME=VALUE"),
    ],
)
def test_what_cannot_be_registered(topics: Command, flags: list[str], code: int, sentence: str) -> None:
    said = topics("table", "register", "t", *flags)
    assert said.code == code and sentence in said.err


def test_a_variable_that_is_not_set_is_no_hindrance(topics: Command, topic: str) -> None:
    said = topics("table", "register", topic, "--dsn-env", "NO_SUCH_DSN", "--key", "id")
    assert said.code == 0 and "NO_SUCH_DSN is not set here" in said.err
    assert (said.lines[0]["location_env"], said.lines[0]["columns"]) == ("NO_SUCH_DSN", [])


def test_delta_tables_and_files_are_looked_at(topics: Command, topic: str, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = pa.table({"id": pa.array([1], pa.int64()), "tags": pa.array([["x"]])})
    deltalake.write_deltalake(str(tmp_path / "plain"), rows)
    said = topics("table", "register", topic, "--delta", tmp_path / "plain", "--key", "id")
    assert said.code == 0 and "delta.enableChangeDataFeed" in said.err
    assert [column["type"] for column in said.lines[0]["columns"]] == ["bigint", "array<string>"]
    fed = {"delta.enableChangeDataFeed": "true"}
    deltalake.write_deltalake(str(tmp_path / "fed"), rows, configuration=fed)
    topics.good("table", "register", topic, "--delta", tmp_path / "fed", "--key", "id")
    (tmp_path / "files").mkdir()
    said = topics("table", "register", topic, "--files", tmp_path / "files")
    assert said.code == 3 and "no files" in said.err
    pq.write_table(rows, tmp_path / "files" / "a.parquet")
    (made,) = topics.good("table", "register", topic, "--files", tmp_path / "files")
    assert [column["name"] for column in made["columns"]] == ["id", "tags"]
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "a.csv").write_text("id;name\n1;x\n")
    flags = ["--files", tmp_path / "csv", "--format", "csv", "--option", "header=true", "--option", "sep=;"]
    (made,) = topics.good("table", "register", topic, *flags)
    assert [(column["name"], column["type"]) for column in made["columns"]] == [("id", "bigint"), ("name", "string")]


def test_types_are_told_as_spark_calls_them() -> None:
    pa: Any = pytest.importorskip("pyarrow")
    kind = pa.struct([("a", pa.map_(pa.string(), pa.decimal128(9, 2))), ("t", pa.timestamp("us", "UTC"))])
    assert arrow_type(kind) == "struct<a:map<string,decimal(9,2)>,t:timestamp>"
    assert (arrow_type(pa.timestamp("us")), arrow_type(pa.large_list(pa.int8()))) == ("timestamp_ntz", "array<tinyint>")
    struct = {"type": "struct", "fields": [{"name": "x", "type": "integer"}]}
    nested = {"type": "map", "keyType": "string", "valueType": {"type": "array", "elementType": struct}}
    assert delta_type(nested) == "map<string,array<struct<x:int>>>"


def test_a_column_of_the_key_is_not_the_key_of_the_server() -> None:
    said = ["table", "register", "chat.messages", "--delta", "/t", "--key", "id", "--key", "day", "--api-key", "secret"]
    _, bound, _ = build_app().parse_args(said, exit_on_error=False)
    assert bound.arguments["key"] == ["id", "day"] and bound.arguments["target"].api_key == "secret"


def test_options_are_shown_and_no_source_is_none(topics: Command, topic: str) -> None:
    flags = ("--files", "/f", "--format", "csv", "--option", "sep=[;]", "--no-look")
    topics.good("table", "register", topic, *flags)
    shown = [line.split() for line in topics("table", "show", topic, "--no-json").out.splitlines()]
    assert ["sep", "[;]"] in shown and ["key", "none"] in shown and ["columns", "not", "known"] in shown
    assert [line for line in shown if line[0] == "source"] == []
    said = topics("table", "rm")
    assert said.code == 2 and "rm needs a table" in said.err and "`topics table ls`" in said.err


def test_what_a_table_cannot_be_looked_at_with(
    topics: Command, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.parquet").write_text("no parquet")
    said = topics("table", "register", topic, "--files", tmp_path / "files")
    assert said.code == 2 and f"the files in {tmp_path}/files are not understood as parquet: " in said.err
    for name, flag, extra in (("deltalake", "--delta", "spark"), ("pyarrow", "--files", "arrow")):
        monkeypatch.setitem(sys.modules, name, None)
        said = topics("table", "register", topic, flag, tmp_path / "files", "--key", "id")
        assert said.code == 1 and f"pip install 'topics[{extra}]', or say --no-look" in said.err
    topics.good("write", topic, "1")
    assert topics("table", "show", topic).code == 3, "nothing was registered"
