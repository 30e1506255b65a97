from __future__ import annotations

from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from topics.server.openapi import document
from topics.server.table import ROUTES

DOCUMENT = document(ROUTES)


def refs(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"].rsplit("/", 1)[1]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(refs, value.values()))
    if isinstance(value, list | tuple):
        return set().union(*map(refs, value))
    return set()


def test_it_is_openapi() -> None:
    OpenAPIV31SpecValidator(DOCUMENT).validate()


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_route_is_in_it(route: Any) -> None:
    operation = DOCUMENT["paths"][route.path][route.method.lower()]
    assert operation["summary"]
    assert ("requestBody" in operation) == (route.method in {"POST", "PUT", "PATCH"})
    assert bool(operation["security"]) == (bool(route.scope) or route.keyed)
    assert "500" in operation["responses"]


def test_shapes_are_used_and_used_shapes_are_there() -> None:
    assert refs(DOCUMENT) == set(DOCUMENT["components"]["schemas"])


def test_operation_ids_are_unique() -> None:
    ids = [about["operationId"] for methods in DOCUMENT["paths"].values() for about in methods.values()]
    assert len(ids) == len(set(ids)) == len(ROUTES)
