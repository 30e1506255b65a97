from __future__ import annotations

from pathlib import Path

from tests.cli.rig import Command, spawn


def test_statements_come_from_the_command_line(topics: Command, topic: str) -> None:
    topics.good("write", "something", "1")
    assert topics.good("sql", "-c", f'CREATE TOPIC "{topic}"') == [{"message": f"topic {topic} created"}]
    said = topics("sql", "--csv", "-c", f'CREATE TOPIC IF NOT EXISTS "{topic}"')
    assert (said.code, said.out, said.err) == (0, "", f"topic {topic} is there already\n")
    written = topics.good("sql", "-c", f'INSERT INTO TOPIC "{topic}" VALUES (?), (?)', '{"sku": "A1"}', "text")
    assert written == [{"topic": topic, "partition": 0, "first_offset": 1, "last_offset": 2}]
    rows = topics.good("sql", "-c", f'SELECT seq, data, data AS data FROM "{topic}" WHERE seq <= ?', "2")
    assert rows == [
        {"seq": 1, "data": {"sku": "A1"}, "data_2": {"sku": "A1"}},
        {"seq": 2, "data": "text", "data_2": "text"},
    ]


def test_rows_may_be_csv_or_a_table(topics: Command, topic: str) -> None:
    topics.good("write", topic, '{"a":"x,y"}', "2")
    text = f'SELECT seq, data, NULL AS nothing FROM "{topic}"'
    said = topics("sql", "--csv", "-c", text)
    assert said.out == 'seq,data,nothing\n1,"{""a"":""x,y""}",\n2,2,\n'
    said = topics("sql", "--no-json", "-c", text)
    assert said.out.splitlines()[0].split() == ["seq", "┃", "data", "┃", "nothing"]
    assert '1 │ {"a":"x,y"} │ null' in said.out and said.err == "2 rows\n"


def test_what_is_too_wide_for_a_table_is_a_line_a_value(topics: Command, topic: str) -> None:
    topics.good("write", topic, "1")
    columns = ", ".join(f"seq AS a_rather_long_name_{number}" for number in range(20))
    said = topics("sql", "--no-json", "-c", f'SELECT {columns} FROM "{topic}"')
    lines = said.out.splitlines()
    assert lines[0].split() == ["row", "1", "│"] and lines[1].split() == ["a_rather_long_name_0", "│", "1"]
    assert len(lines) == 21


def test_statements_are_the_first_argument_where_nothing_else_has_them(topics: Command, topic: str) -> None:
    topics.good("write", topic, "1", "2")
    assert topics.good("sql", f'SELECT count(*) AS n FROM "{topic}" WHERE seq > ?', "1") == [{"n": 1}]
    assert topics.good("sql", "SELECT ? AS n", "-c", "SELECT ? AS given") == [{"given": "SELECT ? AS n"}]


def test_statements_come_from_a_file(topics: Command, topic: str, tmp_path: Path) -> None:
    file = tmp_path / "statements.sql"
    file.write_text(f'-- how many\nSELECT count(*) AS n\nFROM "{topic}";\n')
    topics.good("write", topic, "1")
    assert topics.good("sql", "-f", file) == [{"n": 1}]


def test_what_is_wrong_is_shown_with_its_place(topics: Command) -> None:
    topics.good("write", "something", "1")
    said = topics("sql", "-c", "SHOW TOPICS WHERE x")
    assert (said.code, said.out) == (2, "")
    assert said.err == (
        "topics: invalid_sql: line 1, column 13: WHERE is not understood here; expected LIKE or the end\n"
        "  SHOW TOPICS WHERE x\n"
        "              ^^^^^\n"
    )
    assert topics("sql", "-c", "DESCRIBE TOPIC nothing-here").code == 2
    assert topics("sql", "-c", 'DESCRIBE TOPIC "nothing-here"').code == 3
    assert topics("sql", "-c", "SELECT 1", "-f", "x").code == 2
    assert topics("sql", "-f", "no-such-file").code == 3
    assert topics("sql", "-c", "SELECT 1", "--csv", "--json").code == 2


def test_lost_records_are_told(topics: Command, topic: str) -> None:
    topics.good("topic", "create", topic, "--cap-records", "1")
    topics.good("write", topic, "1", "2")
    lost, row = topics.good("sql", "-c", f'CONSUME FROM "{topic}" FROM 1')
    assert (lost["tombstone"]["gap_from"], lost["tombstone"]["gap_to"], row["offset"]) == (1, 1, 2)
    said = topics("sql", "--csv", "-c", f'CONSUME FROM "{topic}" FROM 1')
    assert said.err == f"{topic} partition 0: offsets 1 to 1 are lost (cap)\n"


def test_statements_come_from_a_pipe_with_parameters_beside_it(tmp_path: Path) -> None:
    spawn("write", "orders", "1", "--dir", tmp_path)
    done = spawn("sql", "--dir", tmp_path, "-f", "-", "5", stdin="SELECT ? AS n")
    assert (done.returncode, done.stdout) == (0, '{"n":5}\n'), done.stderr


def test_statements_come_from_a_pipe(tmp_path: Path) -> None:
    spawn("write", "orders", "1", "--dir", tmp_path)
    done = spawn("sql", "--dir", tmp_path, stdin="SELECT seq FROM orders;\nSHOW TOPICS LIKE 'x'")
    assert (done.returncode, done.stdout) == (0, '{"seq":1}\n')


def test_brackets_and_colons_are_no_styles_and_no_pictures(topics: Command, topic: str) -> None:
    topics.good("write", topic, "1")
    text = f"""SELECT '[/i]' AS "[i]", ':cat:' AS "[/b]", '[bold]' AS ":dog:" FROM "{topic}" """
    head, _, row = topics("sql", "--no-json", "-c", text).out.splitlines()
    assert head.split() == ["[i]", "┃", "[/b]", "┃", ":dog:"]
    assert row.split() == ["[/i]", "│", ":cat:", "│", "[bold]"]


def test_a_file_that_has_no_statements(topics: Command, tmp_path: Path) -> None:
    (tmp_path / "odd.sql").write_bytes(b"SELECT '\xff'")
    said = topics("sql", "-f", tmp_path / "odd.sql")
    assert (said.code, said.out) == (2, "")
    assert (
        f"{tmp_path / 'odd.sql'} is not UTF-8: invalid start byte at byte 9; expected statements in UTF-8" in said.err
    )
    said = topics("sql", "-f", tmp_path)
    assert (said.code, said.out) == (2, "") and f"{tmp_path}: Is a directory; expected a file of st" in said.err
