"""Every kind of statement by everybody: what it needs of whoever asks is what a server asks for."""

from __future__ import annotations

import json
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.client.rig import on_loop
from tests.security.askers import NAME, STATIC_KEYS, everybody
from tests.security.counting import Count
from tests.security.pipelined import Asked, ask_all
from tests.server.accountrig import accounts_served
from topics.server.principal import NO_SCOPE, Scope
from topics.sql.grammar import parse
from topics.sql.needs import needs
from topics.sql.statements import Statement

TEXTS = (
    f"CREATE TOPIC {NAME}",
    f"ALTER TOPIC {NAME} SET (ttl_ms = 5000)",
    f"ALTER TOPIC {NAME} ADD SOURCE mine.t ON INSERT",
    f"ALTER TOPIC {NAME} DROP SOURCE mine.t",
    f"DROP TOPIC {NAME}",
    "REGISTER TABLE mine.t USING CSV LOCATION 'p'",
    "UNREGISTER TABLE mine.t",
    "DESCRIBE TABLE mine.t",
    f"CREATE PIPELINE mine.p AS APPEND INTO DELTA.'x' FROM STREAM {NAME}",
    "DROP PIPELINE mine.p",
    "ALTER PIPELINE mine.p PAUSE",
    "DESCRIBE PIPELINE mine.p",
    f"CLEAR TOPIC {NAME}",
    f"INSERT INTO TOPIC {NAME} VALUES ('1')",
    f"CONSUME FROM {NAME} GROUP g",
    f"ACK {NAME} GROUP g CONSUMER c UPTO OFFSET 1",
    f"NACK {NAME} GROUP g CONSUMER c UPTO OFFSET 1",
    f"EXTEND {NAME} GROUP g CONSUMER c UPTO OFFSET 1 FOR 5000",
    f"PAUSE GROUP g ON {NAME}",
    f"RESET GROUP g ON {NAME} TO LATEST",
    f"DROP GROUP g ON {NAME}",
    "SHOW TOPICS",
    f"DESCRIBE TOPIC {NAME}",
    f"SELECT seq FROM {NAME}",
    f"EXPLAIN SELECT seq FROM {NAME}",
)


def kinds(union: Any) -> set[type]:
    return {kind for part in get_args(union) for kind in (kinds(part) if get_args(part) else {part})}


def test_every_kind_of_statement_is_asked() -> None:
    assert {type(statement) for text in TEXTS for statement in parse(text)} == kinds(Statement)


@on_loop
async def test_every_statement_by_everybody(tmp_path: Path, record_property: Count) -> None:
    surprises = []
    async with accounts_served(tmp_path, api_keys=STATIC_KEYS) as served:
        askers = await everybody(served)
        pairs = [(text, asker) for asker in askers for text in TEXTS]
        asked = [Asked("POST", "/v0/sql", asker.headers, json.dumps({"sql": text}).encode()) for text, asker in pairs]
        told = await ask_all(served.server.url, asked)
    for (text, asker), answer in zip(pairs, told, strict=True):
        (statement,) = parse(text)
        need = needs(statement)
        scope = reduce(or_, (Scope[name.upper()] for name in need.scopes), NO_SCOPE)
        expected = asker.expected("POST", scope, bool(need.names))
        if need.place and asker.names:
            # A runner uses places with its own rights, in which prefixes mean nothing.
            expected = expected or 403
        good = (
            answer.status not in (401, 403) and answer.status < 500 if expected is None else answer.status == expected
        )
        if not good:
            surprises.append(
                f"{text} by {asker.name}: {answer.status} {answer.message!r}, expected {expected or 'let in'}"
            )
    if surprises:
        pytest.fail("\n".join(surprises))
    record_property("statements", len(TEXTS))
    record_property("asked", len(pairs))
