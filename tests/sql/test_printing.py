"""Statements made at random read back as the same from their text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.core.pipelinecommands import Existing
from topics.core.source import Operation, PayloadMode, RouteStart
from topics.groupmodel import EARLIEST, LATEST, at_seq, at_ts
from topics.limits import U32_MAX, U64_MAX, WAIT_MS_MAX
from topics.sql.grammar import parse
from topics.sql.pipelinegrammar import definition
from topics.sql.pipelinestatements import (
    CreatePipeline,
    DescribePipeline,
    DescribeTable,
    DropPipeline,
    PausePipeline,
    RegisterTable,
    UnregisterTable,
)
from topics.sql.printing import to_text
from topics.sql.statements import (
    AckGroup,
    AddSource,
    AlterTopic,
    ClearTopic,
    Consume,
    CreateTopic,
    Describe,
    DropGroup,
    DropSource,
    DropTopic,
    Explain,
    ExtendGroup,
    Insert,
    Json,
    NackGroup,
    PauseGroup,
    ResetGroup,
    Select,
    Show,
    Shown,
    Statement,
)
from topics.sql.words import WORDS
from topics.tablemodel import TableColumn, TableConfig, TableFormat

NAME_LETTERS = "abzABZ019._:-"
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,8}", fullmatch=True) | st.sampled_from(
    [word.lower() for word in WORDS] + list(WORDS)
)
tables = st.text(min_size=1, max_size=12).filter(lambda text: text.encode("utf-8", "ignore").decode() == text)
groups = names
numbers = st.integers(0, U64_MAX)
partitions = st.none() | st.integers(0, U32_MAX)
starts = (
    st.sampled_from([EARLIEST, LATEST])
    | st.builds(at_seq, numbers)
    | st.builds(at_ts, st.integers(0, U64_MAX) | st.integers(0, 4_000_000_000_000))
)
operations = st.lists(st.sampled_from(Operation), min_size=1, max_size=3, unique=True).map(tuple)
texts = st.text(max_size=20).filter(lambda text: text.encode("utf-8", "ignore").decode() == text)
options = st.fixed_dictionaries(
    {},
    optional={
        "ttl_ms": numbers,
        "cap_bytes": numbers,
        "durability": st.sampled_from(["disk", "fsync"]),
        "dedupe_node": st.booleans(),
        "priority": st.none() | st.integers(-1000, 1000),
        "alias": st.none() | st.from_regex(r"alias[a-z._:-]{0,8}", fullmatch=True),
        "partitions": st.integers(1, 64),
        "protect_groups": st.lists(groups, max_size=3).map(tuple),
    },
).map(lambda fields: tuple(fields.items()))
conditions = st.sampled_from(
    [
        "is_visible = true AND channel_id = 42",
        "a > 1 -- why\n OR b",
        "name = 'it''s'",
        "f(x, [1, 2]) IS NOT NULL",
        '"a)b" < 1',
    ]
)
jsons = st.sampled_from([b'{"a": "it\'s"}', b"1", b"null", b'"x"', b"[1, {}]"]).map(Json)
rows = st.tuples(jsons, st.none() | texts, st.none() | st.just(Json(b'{"k":"v"}')))
queries = st.sampled_from(
    [
        "SELECT 1",
        "select data->>'sku' from orders where seq > 3",
        'WITH o AS (SELECT * FROM o) SELECT count(*) FROM o, "a-b" AS x',
        "SELECT 'a;b' -- c\n, \"d\"",
        "(SELECT 1) UNION ALL (SELECT seq FROM app.orders)",
    ]
).map(Select)
starting = st.none() | st.sampled_from([RouteStart.NOW, RouteStart.SNAPSHOT])
existing = st.sampled_from(Existing)
words = st.text(min_size=1, max_size=8).filter(lambda text: text.encode("utf-8", "ignore").decode() == text)
columns = st.lists(words, min_size=1, max_size=3, unique_by=str.lower).map(tuple)
configs = st.builds(
    TableConfig,
    format=st.sampled_from([TableFormat.DELTA, TableFormat.SQLITE]),
    location=words.filter(lambda text: "://" not in text),
    key=columns,
) | st.builds(
    TableConfig,
    format=st.just(TableFormat.CSV),
    location_env=st.just("PLACE"),
    columns=st.just((TableColumn("A b", "bigint", False), TableColumn("c", "STRUCT<D: INT>"))),
    options=st.fixed_dictionaries({}, optional={"header": st.just("true"), "sep": words}),
)
pipelines = st.builds(
    definition,
    st.sampled_from(
        [
            "INSERT INTO TOPIC t PARTITION BY (tag) SELECT * FROM STREAM o AS x JOIN chat.users ON x.tag = users.id",
            "merge into delta.'it''s' KEY (\"a b\") FROM STREAM o WATERMARK ts DELAY '2 hours' WHERE (tag = '\\')",
            "APPEND INTO delta.'p' -- why\n WITH c AS (SELECT seq FROM STREAM o) SELECT * FROM c",
        ]
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "trigger_ms": st.integers(0, 1000),
            "checkpoint": words,
            "starting": st.just("latest"),
            "output_mode": st.sampled_from(["append", "update"]),
            "max_records": st.integers(0, U32_MAX),
        },
    ),
)
statements: st.SearchStrategy[Statement] = (
    st.builds(CreateTopic, names, options, st.booleans())
    | st.builds(AlterTopic, names, options.filter(bool))
    | st.builds(
        AddSource,
        names,
        tables,
        operations,
        st.none() | conditions,
        st.none() | st.sampled_from(["user_id", "a, f(b, c)"]),
        st.sampled_from(PayloadMode),
    )
    | st.builds(
        AddSource, names, tables, operations, st.none(), st.none(), st.sampled_from(PayloadMode), starting, st.just(0)
    )
    | st.builds(
        AddSource, names, tables, operations, start=st.just(RouteStart.VERSION), start_version=st.integers(0, U64_MAX)
    )
    | st.builds(DropSource, names, tables, st.just(()) | operations)
    | st.builds(RegisterTable, names, configs, existing)
    | st.builds(UnregisterTable, names, st.booleans())
    | st.builds(DescribeTable, names)
    | st.builds(CreatePipeline, names, pipelines, existing)
    | st.builds(DropPipeline, names, st.booleans())
    | st.builds(PausePipeline, names, st.booleans())
    | st.builds(DescribePipeline, names)
    | st.builds(DropTopic, names, st.booleans())
    | st.builds(ClearTopic, names, partitions)
    | st.builds(
        Insert, names, st.just(("data", "tag", "meta")), st.lists(rows, min_size=1, max_size=3).map(tuple), partitions
    )
    | st.builds(Insert, names, st.just(("data",)), st.just(((Json(b"1"),),)), st.none(), texts)
    | st.builds(
        Consume,
        names,
        partitions,
        st.just("g"),
        groups,
        st.none() | starts,
        st.none() | st.integers(1, U64_MAX),
        st.integers(0, WAIT_MS_MAX),
    )
    | st.builds(Consume, names, partitions, st.none(), st.just(""), st.none() | starts)
    | st.builds(AckGroup, names, groups, numbers, st.integers(0, U32_MAX), st.just("") | groups)
    | st.builds(
        NackGroup, names, groups, numbers, numbers, st.integers(0, U32_MAX), st.just("") | groups, st.integers(0, 9)
    )
    | st.builds(
        ExtendGroup,
        names,
        groups,
        numbers,
        st.integers(0, U32_MAX),
        st.just("") | groups,
        st.none() | st.integers(1, U64_MAX),
    )
    | st.builds(PauseGroup, names, groups, st.booleans())
    | st.builds(ResetGroup, names, groups, starts, partitions)
    | st.builds(DropGroup, names, groups)
    | st.builds(Show, st.sampled_from([Shown.TOPICS, Shown.TABLES, Shown.PIPELINES]), st.none(), st.none() | texts)
    | st.builds(Show, st.sampled_from([Shown.GROUPS, Shown.ROUTES]), st.none() | names)
    | st.builds(Describe, names)
    | queries
)


def _has_own_alias(statement: Statement) -> bool:
    return isinstance(statement, CreateTopic | AlterTopic) and dict(statement.options).get("alias") == statement.topic


@given(statements.filter(lambda statement: not _has_own_alias(statement)))
def test_a_statement_reads_back_as_the_same(statement: Statement) -> None:
    assert parse(to_text(statement)) == [statement]
    assert parse(f"explain {to_text(statement)};") == [Explain(statement)]


@given(st.lists(statements.filter(lambda statement: not _has_own_alias(statement)), min_size=1, max_size=4))
def test_several_statements_are_each_read(script: list[Statement]) -> None:
    assert parse(" ;\n".join(map(to_text, script))) == script


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (
            "create topic if not exists app.x partitions 2 alias `y-z` with (retention_seconds = 1.5)",
            "CREATE TOPIC IF NOT EXISTS app.x WITH (partitions = 2, alias = 'y-z', ttl_ms = 1500)",
        ),
        ("consume from t from 5", "CONSUME FROM t FROM OFFSET 5"),
        ("ack t group g upto 5", "ACK t GROUP 'g' UPTO OFFSET 5"),
        (
            "reset group g on t to timestamp '2026-01-28T12:00:00+01:00'",
            "RESET GROUP 'g' ON t TO TIMESTAMP '2026-01-28 11:00:00.000+00:00'",
        ),
        (f"reset group g on t to timestamp {U64_MAX}", f"RESET GROUP 'g' ON t TO TIMESTAMP {U64_MAX}"),
        (
            "alter topic x add source t on delete, insert where (a = 1) partition by (b, c) with (payload = 'diff')",
            "ALTER TOPIC x ADD SOURCE t ON DELETE, INSERT WHERE (a = 1) PARTITION BY (b, c) WITH (payload = 'diff')",
        ),
        ('drop topic "if"', 'DROP TOPIC "if"'),
    ],
)
def test_the_printed_text_is_the_plain_one(text: str, printed: str) -> None:
    (statement,) = parse(text)
    assert to_text(statement) == printed
