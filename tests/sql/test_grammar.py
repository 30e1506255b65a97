"""What is refused, where, and what would be right; and that no damaged word is read as something else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import msgspec
import pytest

from topics.errors import InvalidSql
from topics.sql.grammar import Origin, parse, parse_script
from topics.sql.pipelinestatements import CreatePipeline
from topics.sql.statements import Consume, CreateTopic, Explain, Select, Statement
from topics.sql.tokens import Kind, tokenize

EXAMPLES = (
    "CREATE TOPIC IF NOT EXISTS app.x PARTITIONS 4 ALIAS y WITH (ttl_ms = 5, protect_groups = ('a', 'b'))",
    "CREATE TOPIC x WITH (mode = 'max', type = 'heap', max_retries = 5)",
    "ALTER TOPIC x SET (retention_max_bytes = 10, alias = NULL)",
    "ALTER TOPIC x SET (max_retries = 5)",
    "ALTER TOPIC x SET RETENTION WITH (retention_seconds = 60, retention_max_bytes = NULL)",
    "ALTER TOPIC x CLEAR RETENTION",
    "ALTER TOPIC x ADD SOURCE a.b ON INSERT WHERE c = 1 PARTITION BY (d) WITH (payload = 'full')",
    "ALTER TOPIC x ADD SOURCE a.b ON INSERT, UPDATE WHERE (c = 1) PARTITION BY (d) WITH (payload = 'full')",
    "ALTER TOPIC x ADD SOURCE a.b ON INSERT FROM VERSION 3 WITH (payload = 'diff')",
    "ALTER TOPIC x ADD SOURCE a.b ON DELETE FROM SNAPSHOT",
    "ALTER TOPIC x ADD SOURCE a.b ON DELETE FROM NOW",
    "ALTER TOPIC x ADD SOURCE a.b ON INSERT WITH (snapshot = TRUE, payload = 'full')",
    "ALTER TOPIC x DROP SOURCE a.b ON DELETE",
    "REGISTER TABLE IF NOT EXISTS a.b USING DELTA LOCATION 'p' KEY (id, c) COLUMNS ('id bigint, c string')",
    "REGISTER OR REPLACE TABLE a USING POSTGRESQL KEY (id) WITH (location_env = 'DSN', source = 'public.a')",
    "REGISTER TABLE a USING CSV LOCATION 'p' WITH (header = TRUE, sep = ';')",
    "UNREGISTER TABLE IF EXISTS a.b",
    "DESCRIBE TABLE a.b",
    "SHOW TABLES LIKE 'a%'",
    "ALTER PIPELINE p PAUSE",
    "ALTER PIPELINE p RESUME",
    "DROP PIPELINE IF EXISTS p",
    "DESCRIBE PIPELINE p",
    "SHOW PIPELINES",
    "CREATE PIPELINE IF NOT EXISTS p WITH (trigger_ms = 5, starting = 'latest') AS "
    "MERGE INTO DELTA.'x' KEY (id) DELETE WHEN (gone) FROM STREAM o SCHEMA 'id int' "
    "WATERMARK (ts) DELAY OF INTERVAL '1 hour' WHERE (tag = 'a')",
    "CREATE OR REPLACE PIPELINE p AS APPEND INTO DELTA.'x' FROM STREAM o WATERMARK ts DELAY INTERVAL 5 MINUTES",
    "DROP TOPIC IF EXISTS x",
    "CLEAR TOPIC x PARTITION 1",
    "INSERT INTO TOPIC x PARTITION 2 (data, tag) VALUES ('1', 'a'), ('2', NULL)",
    "INSERT INTO TOPIC x KEY 'k' VALUES (-1.5)",
    "CONSUME FROM x PARTITION 3 GROUP 'g' CONSUMER 'c' FROM OFFSET 12 LIMIT 5 WAIT 100",
    "CONSUME FROM x GROUP g FROM TIMESTAMP '2026-01-28' LIMIT 5",
    "CONSUME FROM x GROUP g FROM EARLIEST",
    "CONSUME FROM x GROUP g START 12 LIMIT 5",
    "ACK x GROUP g CONSUMER c PARTITION 2 UPTO OFFSET 9",
    "NACK x GROUP g CONSUMER c PARTITION 2 FROM OFFSET 3 UPTO OFFSET 9 DELAY 50",
    "EXTEND x GROUP g CONSUMER c PARTITION 2 UPTO OFFSET 9 FOR 5000",
    "PAUSE GROUP g ON x",
    "RESUME GROUP g ON x",
    "RESET GROUP g ON x PARTITION 1 TO LATEST",
    "DROP GROUP g ON x",
    "SHOW TOPICS LIKE 'a%'",
    "SHOW GROUPS ON x",
    "SHOW ROUTES",
    "DESCRIBE TOPIC x",
)


def meant_by(text: str) -> list[Statement]:
    """The statements without the text of a pipeline, which is kept as it was written."""
    return [
        replace(each, config=msgspec.structs.replace(each.config, definition=""))
        if isinstance(each, CreatePipeline)
        else each
        for each in parse(text)
    ]


def damaged(text: str) -> Iterator[tuple[str, str]]:
    """The text with one word or sign removed, said twice, or replaced by one that means nothing.

    Names and values stay: nobody can tell another name or number from the one that was meant.
    """
    for token in tokenize(text):
        word = text[token.start : token.end]
        if not (token.kind is Kind.WORD and word.isupper()) and not (token.kind is Kind.SIGN and word not in ".-"):
            continue
        before, after = text[: token.start], text[token.end :]
        yield f"without {word}", f"{before} {after}"
        yield f"{word} twice", f"{before}{word} {word}{after}"
        yield f"{word} replaced", f"{before} zzz {after}"


@pytest.mark.parametrize("text", EXAMPLES)
def test_no_damaged_word_is_read_as_something_else(text: str) -> None:
    (meant,) = meant_by(text)
    for what, wrong in damaged(text):
        try:
            found = meant_by(wrong)
        except InvalidSql as error:
            assert error.detail["line"] == 1 and error.detail["column"] >= 1
        else:
            assert found == [meant], f"{what}: {wrong}"


QUERY = (
    "CREATE PIPELINE p AS INSERT INTO TOPIC t PARTITION BY (tag) "
    "SELECT tag FROM STREAM o SCHEMA 'a int' WATERMARK ts DELAY '1 day' JOIN STREAM p ON TRUE WHERE seq > 1"
)
"""The words of its query are Spark's, which is judge of them."""


@pytest.mark.parametrize("text", [*EXAMPLES, QUERY])
def test_a_statement_that_ends_early_says_what_is_missing(text: str) -> None:
    (meant,) = parse(text)
    tokens = tokenize(text)
    for count in range(1, len(tokens)):
        cut = text[: tokens[count - 1].end]
        try:
            assert parse(cut) != [meant]
        except InvalidSql as error:
            assert error.detail["expected"], cut


@pytest.mark.parametrize("text", EXAMPLES)
def test_words_are_the_same_in_any_case(text: str) -> None:
    lowered = "".join(part.lower() if number % 2 == 0 else f"'{part}'" for number, part in enumerate(text.split("'")))
    assert meant_by(lowered) == meant_by(text)


@pytest.mark.parametrize(
    ("text", "line", "column", "expected", "sentence"),
    [
        ("CREATE TOPIC orders PARTITION 4", 1, 21, ["PARTITIONS", "ALIAS", "WITH", "the end"], "PARTITION is not"),
        ("create topic", 1, 13, ["IF", "the name of a topic"], "ends too early"),
        ("select 1;\n  create topic x wit", 2, 18, ["PARTITIONS", "ALIAS", "WITH", "the end"], "wit is not"),
        ("create topic x with (ttl_ms = 'x')", 1, 31, ["an integer from 0 to 2^64-1"], "ttl_ms must be"),
        ("create topic x with (ttl_ms = 1, retention_seconds = 2)", 1, 54, [], "ttl_ms is said twice"),
        ("create topic x with (partitions = 2, partitions = 3)", 1, 51, [], "said twice"),
        ("create topic x with (retention_seconds = -1)", 1, 42, ["a number from 0"], "retention_seconds is"),
        ("create topic x with (retention_seconds = true)", 1, 42, ["a number from 0"], "retention_seconds is"),
        ("create topic x with (mode = 'max')", 1, 29, ['a topic of type "heap"'], "mode belongs to heaps"),
        ("create topic x with (ttl_ms = 5, type = 'heap')", 1, 31, None, "heap"),
        ("create topic x with (mode = 'max', type = 'heep')", 1, 43, None, "type must be"),
        ("create topic x partitions 0", 1, 27, ["a whole number from 1"], "whole number"),
        ('create topic "a b"', 1, 14, None, "is not a topic name"),
        ("create topic x alias x", 1, 22, ["another name"], "alias must be another name"),
        ("insert into topic x values ('hello')", 1, 29, None, "not JSON"),
        ("insert into topic x (tag) values ('a')", 1, 25, ["data"], "a record has data"),
        ("insert into topic x (data, price) values (1, 2)", 1, 28, ["data", "tag", "node", "meta"], "price is no"),
        ("insert into topic x (data, data) values (1, 2)", 1, 28, [], "data is said twice"),
        ("insert into topic x (data, tag) values (1, 2)", 1, 44, ["a string"], "tag is a string or NULL"),
        ("insert into topic x values (1e)", 1, 29, ["a value for data"], "1e is no number"),
        ("insert into topic x values (-1e999)", 1, 29, ["a value for data"], "1e999 is too large a number"),
        ("insert into topic x values (1, 2)", 1, 30, [")"], ", is not"),
        ("consume from x limit 0", 1, 22, ["a whole number from 1"], "a limit"),
        ("consume from x consumer c", 1, 16, None, "consumer is not"),
        ("consume from x wait 30001", 1, 21, None, "milliseconds"),
        ("ack x group g upto -1", 1, 20, None, "an offset"),
        ("ack x group 'a b' upto 1", 1, 13, None, "is not the name of a group"),
        ("reset group g on x to 'yesterday'", 1, 23, None, "is not understood"),
        ("reset group g on x to timestamp 'yesterday'", 1, 33, None, "no time"),
        ("reset group g on x to timestamp -5", 1, 33, None, "no time"),
        ("reset group g on x to timestamp '1969-12-31 23:59'", 1, 33, None, "times begin in 1970"),
        ("alter topic x add source t on insert where (a = (select 1))", 1, 45, None, "a query cannot stand"),
        ("alter topic x add source t on insert where (count(*) > 1)", 1, 45, None, "an aggregate"),
        ("alter topic x add source t on insert where (a = ?)", 1, 49, ["a literal"], "no parameter"),
        ("alter topic x add source t on insert where (a, b)", 1, 48, [")"], "one condition"),
        ("alter topic x add source t on insert where ()", 1, 45, ["an expression"], ") is not understood"),
        ("alter topic x add source t on insert where (drop table x)", 1, 45, ["an expression"], "no expression"),
        ('alter topic x add source t on insert where (null(""))', 1, 45, ["an expression"], "no expression"),
        ("alter topic x add source t on insert, insert", 1, 39, [], "INSERT is said twice"),
        (
            "alter topic x add source t on insert with (payload = 'all')",
            1,
            54,
            ["'key'", "'full'", "'diff'"],
            "payload",
        ),
        ("alter topic x add source t on insert with (payload = 'key', payload = 'key')", 1, 61, [], "said twice"),
        ("alter topic x add source t on insert from yesterday", 1, 43, ["NOW", "SNAPSHOT", "VERSION"], "yesterday"),
        ("alter topic x add source t on insert from now with (snapshot = true)", 1, 64, ["one of them"], "both say"),
        ("alter topic x add source t on insert with (snapshot = 1)", 1, 55, ["TRUE", "FALSE"], "snapshot is"),
        ("register table t using oracle", 1, 24, None, "oracle is not understood"),
        ("register table t using delta location 'p'", 1, 16, None, "needs a key"),
        ("register table t using delta location 'p' key (a, a)", 1, 51, [], "a is said twice"),
        ("register table t using delta location 'p' key (a) columns ('a')", 1, 60, None, "a has no type"),
        ("register table t using delta location 'p' key (b) columns ('a int')", 1, 16, ["a"], "no column b"),
        ("register table t using csv location 'p' with (heeder = true)", 1, 47, None, "no option of a table"),
        ("register table t using csv location 'p' with (sep = ';', sep = ',')", 1, 58, [], "sep is said twice"),
        ("register table t using postgresql location 'postgresql://u:p@h/d' key (a)", 1, 16, None, "a password"),
        ("register table t using postgresql location 'host=h password=p' key (a)", 1, 16, None, "a password"),
        ("register or replace table if not exists t using csv", 1, 27, ["one of them"], "cannot both"),
        ("create pipeline p with (trigger_ms = -1) as append", 1, 38, None, "trigger_ms cannot be -1"),
        ("create pipeline p with (starting = 'now') as x", 1, 36, ["'earliest'", "'latest'"], "starting cannot be"),
        ("create pipeline p with (speed = 1) as x", 1, 25, None, "speed is no option"),
        ("create pipeline p as delete from x", 1, 22, ["INSERT", "MERGE", "APPEND"], "delete is not understood"),
        ("create pipeline p as merge into delta.'p' select 1", 1, 43, ["KEY"], "select is not"),
        ("alter pipeline p stop", 1, 18, ["PAUSE", "RESUME"], "stop is not understood"),
        ("explain explain select 1", 1, 25, None, "not itself"),
        ("", 1, 1, None, "there is no statement; expected SELECT, CREATE, "),
        ("select 'abc", 1, 8, ["'"], "a quote has no end"),
        ("select /* abc", 1, 8, ["*/"], "a comment has no end"),
        ("truncate x", 1, 1, None, "truncate is not understood here"),
    ],
)
def test_a_refusal_says_where_and_what_would_be_right(
    text: str, line: int, column: int, expected: list[str] | None, sentence: str
) -> None:
    with pytest.raises(InvalidSql) as refused:
        parse(text)
    detail = refused.value.detail
    assert (detail["line"], detail["column"]) == (line, column)
    assert expected is None or detail["expected"] == expected
    assert sentence in refused.value.message
    shown, carets = refused.value.message.split("\n")[-2:]
    assert shown.strip() in text or not text
    assert set(carets.strip()) == {"^"} and carets.index("^") - 2 == column - 1


def test_the_error_is_drawn_with_carets() -> None:
    with pytest.raises(InvalidSql) as refused:
        parse("CREATE TOPIC orders PARTITION 4")
    assert refused.value.message == (
        "line 1, column 21: PARTITION is not understood here; expected PARTITIONS, ALIAS, WITH or the end\n"
        "  CREATE TOPIC orders PARTITION 4\n"
        "                      ^^^^^^^^^"
    )


def test_parameters_are_values_and_never_text() -> None:
    evil = "x'; DROP TOPIC orders; --"
    (create, consume, select) = parse(
        "create topic t with (ttl_ms = ?); consume from t limit ?; select ? from t where tag = ?", [5, 7, 1, evil]
    )
    assert create == CreateTopic("t", (("ttl_ms", 5),))
    assert consume == Consume("t", limit=7)
    assert select == Select("select $1 from t where tag = $2", (1, evil))
    assert parse("create topic t with (protect_groups = ?)", [["a", "b"]]) == [
        CreateTopic("t", (("protect_groups", ("a", "b")),))
    ]


def test_numbered_parameters_may_be_used_again() -> None:
    (first, second) = parse("select $2, $1, $2; consume from t limit $1", [3, "b"])
    assert first == Select("select $1, $2, $3", ("b", 3, "b"))
    assert second == Consume("t", limit=3)


@pytest.mark.parametrize(
    ("text", "values", "sentence"),
    [
        ("select ?", [], "0 were given"),
        ("select ?", [1, 2], "2 parameters were given, and the statements use 1"),
        ("select $1, ?", [1], "all ? or all numbered"),
        ("select ?, $1", [1], "all ? or all numbered"),
        ("select $2", [1], "no parameter 2"),
        ("select $0", [1], "no parameter 0"),
        ("select 1", [1], "use 0"),
        ("consume from ? limit 1", ["t"], "? is not understood here"),
        ("consume from t limit ?", ["5"], "whole number"),
        ("consume from t limit ?", [True], "whole number"),
        ("select ?", [{"a": 1}], "is an object; expected a string"),
        ("create topic t with (protect_groups = ?)", [{"a": 1}], "a string, a number, TRUE, FALSE, NULL or a list"),
        ("create topic t with (protect_groups = ?)", [["a", 1]], "a string, a number, TRUE, FALSE, NULL or a list"),
        ("reset group g on t to timestamp ?", [1.5], "this is no time"),
        ("insert into topic t values (?)", [float("nan")], "NaN and infinities are not JSON numbers"),
        ("insert into topic t values (?)", [object()], "data cannot be written as JSON"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(text: str, values: list[object], sentence: str) -> None:
    with pytest.raises(InvalidSql, match=sentence.replace("?", "[?]")):
        parse(text, values)


def test_a_script_knows_where_its_statements_stand() -> None:
    text = "show topics;\n explain select 1;; select 2"
    script = parse_script(text)
    assert [origin for _, origin in script] == [Origin(text, 0, 1), Origin(text, 22, 2), Origin(text, 33, 3)]
    assert script[1][0] == Explain(Select("select 1"))


def test_json_that_is_too_deep_is_refused_where_it_stands() -> None:
    with pytest.raises(InvalidSql, match="data must be nested at most") as raised:
        parse(f"INSERT INTO TOPIC x (data) VALUES ('{'[' * 100_000}{']' * 100_000}')")
    assert (raised.value.detail["line"], raised.value.detail["column"]) == (1, 36)


def test_what_is_too_long_is_refused() -> None:
    with pytest.raises(InvalidSql, match="1048576 bytes at most"):
        parse("select '" + "x" * 1_048_576 + "'")
    with pytest.raises(InvalidSql, match="1000 at most"):
        parse("show topics;" * 1001)
    with pytest.raises(InvalidSql, match="10001 parameters, of 10000 at most"):
        parse("select 1", [0] * 10_001)
    with pytest.raises(InvalidSql, match="an expression has at most 4096 bytes"):
        parse(f"alter topic x add source t on insert where (a = '{'é' * 2048}')")
    with pytest.raises(InvalidSql, match="a pipeline has at most 65536 bytes"):
        parse(f"create pipeline p as insert into topic t select '{'é' * 32_768}' from stream o")


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("RESET CONSUMER GROUP 'g' ON t PARTITION 1 TO 5", "RESET GROUP g ON t PARTITION 1 TO OFFSET 5"),
        ("PAUSE CONSUMER GROUP g ON t", "PAUSE GROUP g ON t"),
        ("RESUME CONSUMER GROUP g ON t", "RESUME GROUP g ON t"),
        ("DROP CONSUMER GROUP g ON t", "DROP GROUP g ON t"),
        ("CONSUME FROM t GROUP g START EARLIEST", "CONSUME FROM t GROUP g FROM EARLIEST"),
        ("CONSUME FROM t GROUP g START LATEST LIMIT 3", "CONSUME FROM t GROUP g FROM LATEST LIMIT 3"),
        ("CONSUME FROM t START OFFSET 7", "CONSUME FROM t FROM 7"),
        ("ALTER TOPIC t SET RETENTION WITH (retention_seconds = 60)", "ALTER TOPIC t SET (ttl_ms = 60000)"),
        ("ALTER TOPIC t SET RETENTION WITH (cap_records = 9)", "ALTER TOPIC t SET (cap_records = 9)"),
        ("ALTER TOPIC t CLEAR RETENTION", "ALTER TOPIC t SET (ttl_ms = 0, cap_bytes = 0, cap_records = 0)"),
        (
            "ALTER TOPIC t SET (retention_seconds = NULL, retention_max_bytes = NULL, cap_records = NULL)",
            "ALTER TOPIC t SET (ttl_ms = 0, cap_bytes = 0, cap_records = 0)",
        ),
        (
            "CREATE TOPIC t WITH (protect_groups = NULL, max_deliveries = NULL)",
            "CREATE TOPIC t WITH (protect_groups = (), max_deliveries = 0)",
        ),
        ("ALTER TOPIC t SET (priority = NULL, alias = NULL)", "ALTER TOPIC t SET (priority = NULL, alias = NULL)"),
        (
            "ALTER TOPIC t ADD SOURCE s ON INSERT WHERE a = 1 AND b = 2",
            "ALTER TOPIC t ADD SOURCE s ON INSERT WHERE (a = 1 AND b = 2)",
        ),
        (
            "ALTER TOPIC t ADD SOURCE s ON INSERT WHERE (a = 1) AND (b = 2) PARTITION BY (c)",
            "ALTER TOPIC t ADD SOURCE s ON INSERT WHERE ((a = 1) AND (b = 2)) PARTITION BY (c)",
        ),
        (
            "ALTER TOPIC t ADD SOURCE s ON INSERT WHERE a IN (1, 2) WITH (payload = 'full')",
            "ALTER TOPIC t ADD SOURCE s ON INSERT WHERE (a IN (1, 2)) WITH (payload = 'full')",
        ),
    ],
)
def test_other_spelling_means_the_same(text: str, same: str) -> None:
    assert parse(text) == parse(same)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("ALTER TOPIC t SET RETENTION WITH (durability = 'disk')", 35, "durability is no option of retention"),
        ("ALTER TOPIC t SET RETENTION (ttl_ms = 1)", 29, "is not understood here"),
        ("ALTER TOPIC t CLEAR", 20, "the statement ends too early"),
        ("ALTER TOPIC t SET (partitions = NULL)", 33, "partitions must be an integer from 1 to 1024, not NULL"),
        ("ALTER TOPIC t SET (retention_max_bytes = 'x')", 42, "retention_max_bytes must be an integer"),
        ("ALTER TOPIC t SET (durability = NULL)", 33, "durability"),
        ("ALTER TOPIC t ADD SOURCE s ON INSERT WHERE", 43, "the statement ends too early"),
        ("ALTER TOPIC t ADD SOURCE s ON INSERT WHERE WITH (payload = 'key')", 44, "is not understood here"),
        ("ALTER TOPIC t ADD SOURCE s ON INSERT WHERE a = 1, b = 2", 44, "this is no expression"),
        ("ALTER TOPIC t ADD SOURCE s ON INSERT WHERE a = 1)", 44, "this is no expression"),
        ("ALTER TOPIC t ADD SOURCE s ON INSERT WHERE a = ?", 48, "no parameter can stand in what is stored"),
        ("ALTER TOPIC t ADD SOURCE s ON INSERT WHERE count(*) > 1", 44, "an aggregate"),
        ("CONSUME FROM t START FROM 5", 22, "is not understood here"),
        ("RESET CONSUMER g ON t TO 5", 16, "is not understood here"),
    ],
)
def test_other_spelling_that_is_wrong_says_where(text: str, column: int, message: str) -> None:
    with pytest.raises(InvalidSql, match=message) as refused:
        parse(text, [1] if "?" in text else [])
    assert refused.value.detail["column"] == column


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("SELECT ?, ?", [1, {"a": 1}], r"params\[1\] is an object; expected a string, .* or an object as JSON text"),
        ("SELECT $1", [[1, [{"a": 1}]]], r"params\[0\]\[1\]\[0\] is an object"),
        ("SELECT $2, $1", [[1, [2]], 1], r"params\[0\] mixes lists with other values; expected"),
        ("SELECT ?", [nested(33)], r"params\[0\] has more than 32 lists in each other"),
        ("SELECT ?", [nested(512)], r"params\[0\] has more than 32 lists in each other"),
    ],
)
def test_parameter_that_a_query_cannot_take_is_named(text: str, values: list[object], message: str) -> None:
    with pytest.raises(InvalidSql, match=message) as refused:
        parse(text, values)
    assert refused.value.detail["line"] == 1


def test_lists_are_parameters_of_a_query() -> None:
    values = [nested(32), [1, None], [[1], None, []], []]
    assert parse("SELECT ?, ?, ?, ?", values) == [Select("SELECT $1, $2, $3, $4", tuple(values))]
