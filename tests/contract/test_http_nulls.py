"""A field of a request that is null: the same as one that is left out, or refused, as the OpenAPI document says."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.client.rig import on_loop
from tests.server.accountrig import Browser, accounts_served
from topics.server.openapi import document
from topics.server.table import ROUTES

DOCUMENT = document(ROUTES)
NUMBER = "{number}"
"""In a path or a body: another number each time."""
GOOD: dict[str, dict[str, Any]] = {
    "PUT /v0/topics/t": {},
    "PATCH /v0/topics/t": {},
    "PUT /v0/routers/r": {"source": "orders", "dest": "copies"},
    "PUT /v0/tables/t": {"format": "parquet", "location": "/lake/t"},
    "PUT /v0/pipelines/p": {"definition": "INSERT INTO TOPIC alerts SELECT tag FROM STREAM orders"},
    "POST /v0/pipelines/p/report": {"runner": "r", "state": "running"},
    "POST /v0/sql": {"sql": "SELECT 1"},
    "POST /v0/watch/token": {},
    "POST /v1/users": {"email": f"{NUMBER}@example.org"},
    "PATCH /v1/users/{user}": {"disabled": False},
}
"""For every request that has a field which may be left out and may not be null, and some others: one that is right."""


def resolved(schema: Any) -> Any:
    while "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def may_be_null(schema: Any) -> bool:
    schema = resolved(schema)
    if "oneOf" in schema:
        return any(map(may_be_null, schema["oneOf"]))
    return "null" in schema.get("type", "null") and None in schema.get("enum", [None])


def optional_fields() -> dict[str, dict[str, bool]]:
    """For each operation with a body, what may be left out, and whether it may be null."""
    found = {}
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            shape = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
            schema = resolved(shape)
            needed = schema.get("required", [])
            found[f"{method.upper()} {path}"] = {
                name: may_be_null(field) for name, field in schema.get("properties", {}).items() if name not in needed
            }
    return found


def fields_of(operation: str) -> dict[str, bool]:
    (found,) = (fields for described, fields in optional_fields().items() if _same(described, operation))
    return found


def _same(described: str, operation: str) -> bool:
    pairs = list(zip(described.split("/"), operation.split("/"), strict=False))
    return described.count("/") == operation.count("/") and all(a == b or a.startswith("{") for a, b in pairs)


def test_every_request_with_such_a_field_is_here() -> None:
    strict = {described for described, fields in optional_fields().items() if not all(fields.values())}
    assert strict
    assert {described for described in strict if not any(_same(described, operation) for operation in GOOD)} == set()


@pytest.mark.parametrize("operation", GOOD)
@on_loop
async def test_null_is_as_described(tmp_path: Path, operation: str) -> None:
    method, path = operation.split()
    numbers = count(1)
    async with accounts_served(tmp_path) as served:
        admin = await served.signed_up()
        user = await set_up(admin)

        async def status(body: dict[str, Any]) -> int:
            filled = {
                name: value.replace(NUMBER, str(next(numbers))) if isinstance(value, str) else value
                for name, value in body.items()
            }
            return (await admin.call(method, path.replace("{user}", user), filled)).status

        good = GOOD[operation]
        assert await status(good) < 300
        fields = fields_of(operation)
        assert fields
        for name, null in fields.items():
            left_out = await status({key: value for key, value in good.items() if key != name}) < 300
            taken = await status(good | {name: None})
            assert (taken < 300, taken < 300 or taken == 400) == (left_out and null, True), name


async def set_up(admin: Browser) -> str:
    """What the requests are about; the id of a user."""
    for path, body in (
        ("/v0/topics/t", {}),
        ("/v0/topics/orders", {}),
        ("/v0/topics/alerts", {}),
        ("/v0/pipelines/p", GOOD["PUT /v0/pipelines/p"]),
    ):
        made = await admin.call("PUT", path, body)
        assert made.status == 201, made.body
    invited: str = (await admin.post("/v1/users", {"email": "eve@example.org"})).body["id"]
    return invited
