"""SQL: a text of statements becomes values that, printed and read again, are the same."""

from __future__ import annotations

from typing import Final

from proof.fuzz.target import Target
from topics.errors import TopicsError
from topics.sql import (
    grammar,
    groupgrammar,
    needs,
    pipelinegrammar,
    place,
    printing,
    querygrammar,
    reader,
    tablegrammar,
    tokens,
    topicgrammar,
)
from topics.sql.grammar import parse
from topics.sql.printing import to_text
from topics.sql.statements import Select

PARAMETERS: Final = (1, "x", None)


def read_statements(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    statements = parse(text, PARAMETERS[: text.count("?")])
    for statement in statements:
        needs.needs(statement)
        if not isinstance(statement, Select):
            printed = to_text(statement)
            assert to_text(*parse(printed)) == printed, f"{printed!r} is read as something else"


SQL: Final = Target(
    name="sql",
    run=read_statements,
    errors=(TopicsError,),
    modules=(
        *(grammar, topicgrammar, groupgrammar, querygrammar, tablegrammar, pipelinegrammar),
        *(reader, tokens, place, printing, needs),
    ),
    seeds=(
        b"CREATE TOPIC orders WITH (type = 'queue', lease_ms = 5000)",
        b"DROP TOPIC IF EXISTS a",
        b"INSERT INTO orders (data, tag) VALUES ('{\"a\":1}', 'x'), (?, NULL)",
        b"SELECT seq, data->>'a' AS a FROM orders WHERE seq > 5 AND tag LIKE 'x%' ORDER BY seq LIMIT 10",
        b"CONSUME FROM orders GROUP g LIMIT 10",
        b"ACK orders GROUP g CLAIM 'c1' SEQS 1, 2",
        b"ALTER TOPIC orders SET (ttl_ms = 5) -- note\n; SHOW TOPICS",
        b"DESCRIBE TOPIC orders",
        b"EXPLAIN SELECT * FROM system.topics /* x */",
        b"REGISTER TABLE t (id BIGINT, name STRING) USING delta LOCATION 'lake/t'",
        b"CREATE PIPELINE p AS INSERT INTO b SELECT a.data FROM STREAM a",
        b"RESET GROUP g ON orders TO EARLIEST",
        b"PAUSE GROUP g ON orders",
    ),
    words=(
        *(
            b"SELECT ",
            b"FROM ",
            b"WHERE ",
            b"TOPIC ",
            b"GROUP ",
            b"TABLE ",
            b"PIPELINE ",
            b"CREATE ",
            b"DROP ",
            b"SHOW ",
        ),
        *(
            b"'",
            b'"',
            b"`",
            b"(",
            b")",
            b",",
            b";",
            b"?",
            b"--",
            b"/*",
            b"*/",
            b"NULL",
            b"TRUE",
            b" = ",
            b"->>",
            b"::",
            b".",
        ),
        *(
            b"INSERT INTO ",
            b"VALUES ",
            b"WITH ",
            b"IF NOT EXISTS ",
            b"LIMIT ",
            b"(((((((((",
            b"NOT NOT NOT ",
            b"\xc3\xa9",
        ),
        *(b"ADD SOURCE ", b"ON INSERT ", b"CONSUME ", b"NACK ", b"EXTEND ", b"SEQS ", b"REGISTER ", b"USING ", b"AS "),
    ),
    bytes_max=192,
    # The parser of a query keeps a tree of Python objects a word.
    memory_factor=16_384,
)

TARGETS: Final = (SQL,)
