"""The server does what its OpenAPI document says, for requests made from the document, right and wrong ones."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case, CheckContext, Response
from schemathesis.checks import not_a_server_error
from schemathesis.core.parameters import ParameterLocation
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
    use_after_free,
)

from tests.server.api import serving
from topics.server.openapi import document
from topics.server.table import ROUTES


def without_keys() -> dict[str, Any]:
    """The document as it is for a server that has no keys: then a request without one is as good as any."""
    found = document(ROUTES)
    for methods in found["paths"].values():
        for operation in methods.values():
            operation["security"] = []
    return found


# Bodies of Arrow are bytes like any other here: what they hold is not described by a schema.
schemathesis.serializer.alias("application/vnd.apache.arrow.stream", "application/octet-stream")
SCHEMA = schemathesis.openapi.from_dict(without_keys())
STREAMS = r"/(watch|work)$"
"""What has no end once it begins."""


def refused(context: CheckContext, response: Response, case: Case) -> bool | None:
    """A 412 is a refusal too: the topic is no heap, whatever else is wrong."""
    if response.status_code == HTTPStatus.PRECONDITION_FAILED:
        return None
    return negative_data_rejection(context, response, case)


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    refused,
    unsupported_method,
    use_after_free,
]
KINDS = ("log", "queue", "heap")
EXAMPLES = 10
WAIT_MS_MAX = 10
"""Reads that wait for long would only make this slow."""
TIMEOUT_S = 60
"""A busy machine is no fault of the server's."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server on a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = serving(tmp_path_factory.mktemp("served"))
    try:
        api = asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
        for kind in KINDS:
            made = asyncio.run_coroutine_threadsafe(api.put(f"/v0/topics/{kind}", {"type": kind}), loop).result()
            assert made.status == HTTPStatus.CREATED
        yield api.address.geturl()
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@SCHEMA.exclude(path_regex=STREAMS).parametrize()
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_every_operation_is_as_described(case: Case, url: str) -> None:
    dont_wait(case)
    case.call_and_validate(base_url=url, checks=CHECKS, timeout=TIMEOUT_S)


@pytest.mark.parametrize("known", KINDS)
@SCHEMA.include(path_regex="{topic}").exclude(method="DELETE").exclude(path_regex=STREAMS).parametrize()
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
def test_every_operation_on_a_topic_that_is_there(case: Case, url: str, known: str) -> None:
    dont_wait(case)
    # Where the path was the part that was wrong, it is right now, and nothing is said of what must be refused.
    path = case.meta.components.get(ParameterLocation.PATH) if case.meta else None
    wrong = path is not None and path.mode is GenerationMode.NEGATIVE
    case.path_parameters["topic"] = known
    checks = [check for check in CHECKS if not (wrong and check is refused)]
    case.call_and_validate(base_url=url, checks=checks, timeout=TIMEOUT_S)


def dont_wait(case: Case) -> None:
    if isinstance(case.body, dict) and isinstance(case.body.get("wait_ms"), int):
        case.body["wait_ms"] = min(case.body["wait_ms"], WAIT_MS_MAX)
    if isinstance(case.body, dict) and is_duration(case.body.get("wait_time")):
        case.body["wait_time"] = WAIT_MS_MAX / 1000


def is_duration(value: object) -> bool:
    """Whether it would be waited for. What is none stays, to be refused."""
    if isinstance(value, str):
        return re.fullmatch(r"\d+(\.\d+)?s?", value, re.ASCII) is not None
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
