"""The OpenAPI 3.1 document, made from the table of routes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from topics import __version__
from topics.server import (
    accountschemas,
    archiveschemas,
    auditschemas,
    groupschemas,
    heapschemas,
    observingschemas,
    pipelineschemas,
    producerschemas,
    queueschemas,
    routerschemas,
    sqlschemas,
)
from topics.server.principal import NO_SCOPE
from topics.server.route import Route
from topics.server.schemas import COMPONENTS
from topics.server.shapes import answer
from topics.server.streamtokens import QUERY_NAME

TAGS = {
    "topics": "Logs by name: create, configure, look at, list and delete them.",
    "records": "Append records, read them behind a cursor, delete them.",
    "groups": "Positions that the server keeps and consumers share: consume, ack, give back, reset, look.",
    "queues": "Hand out the records of a queue as jobs: lease, complete, give back, push, and bring back dead letters.",
    "heaps": "Messages by priority: enqueue, pop the best, ack, give back, dead letters. Errors have canonical codes.",
    "routers": "Copy what one topic gets into another: put, look at, list and delete the rules.",
    "pipelines": "Tables and what is made of their changes and of topics: declare, look at, pause, report, delete.",
    "sql": "Topics, groups and records in SQL statements.",
    "watch": "Follow many topics over one connection: event streams (SSE), and a WebSocket that also writes.",
    "batches": "Writes over several topics that happen together or not at all.",
    "producers": "Producers that are remembered so that nothing is taken twice.",
    "archives": "How far copies elsewhere have come, so that retention can wait for them.",
    "accounts": "Managed keys, users and sessions: make, look at, change and end them; sign in and out.",
    "operations": "Health, metrics, and this document.",
}
_ERRORS = {
    "400": "The request is malformed; `error.detail` names the field and what is expected.",
    "401": "No key, or an unknown one.",
    "403": "The key lacks the scope, or may not touch the name.",
    "404": "There is no such topic.",
    "409": "It conflicts with what is there.",
    "413": "The body is too large.",
    "415": "The body is not `application/json` in UTF-8.",
    "422": "The topic is full and refuses rather than evicts.",
    "429": "Too much at once, or a cap is reached; see `Retry-After` and `error.detail`.",
    "500": "A bug, or damaged storage.",
    "503": "Not ready yet, shutting down, or the log has stopped; see `Retry-After`.",
}
_OPEN_ERRORS = ("500", "503")
_PRECONDITION = {"412": "It is not as the call takes it to be: the lease is gone, the topic is no heap."}
"""On `/v1` as well, where codes are those of gRPC."""


def document(routes: Iterable[Route]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "topics",
            "version": __version__,
            "description": "A durable event engine: one log per topic, and several ways to take from it.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "tags": [{"name": name, "description": words} for name, words in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": COMPONENTS
            | queueschemas.COMPONENTS
            | groupschemas.COMPONENTS
            | heapschemas.COMPONENTS
            | routerschemas.COMPONENTS
            | pipelineschemas.COMPONENTS
            | archiveschemas.COMPONENTS
            | producerschemas.COMPONENTS
            | sqlschemas.COMPONENTS
            | accountschemas.COMPONENTS
            | auditschemas.COMPONENTS
            | observingschemas.COMPONENTS,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "token": {"type": "apiKey", "in": "query", "name": QUERY_NAME},
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    about = route.operation
    assert about.tag in TAGS, f"{route.path}: no such tag as {about.tag}"
    scopes = [str(scope.name).lower() for scope in route.scope]
    made: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": about.summary,
        "description": about.description + (f" Scope: {' and '.join(scopes)}." if scopes else ""),
        "tags": [about.tag],
        "security": _security(route),
    }
    if about.parameters:
        made["parameters"] = list(about.parameters)
    if about.request_body is not None:
        made["requestBody"] = about.request_body
    statuses = tuple(_ERRORS) if made["security"] else _OPEN_ERRORS
    errors = {status: answer("Error", _ERRORS[status]) for status in statuses}
    if route.path.startswith("/v1/"):
        errors |= {status: answer("Error", words) for status, words in _PRECONDITION.items()}
    made["responses"] = dict(sorted((errors | (about.responses or {})).items()))
    return made


def _security(route: Route) -> list[dict[str, list[str]]]:
    if route.scope is NO_SCOPE and not route.keyed:
        return []
    return [{"key": []}, {"token": []}] if route.query_token else [{"key": []}]


def _operation_id(route: Route) -> str:
    """`post_v0_topics_topic_diff`: stable, and made of what never changes."""
    parts = [part.strip("{}") for part in route.path.split("/") if part]
    return "_".join([route.method.lower(), *parts]).replace(".", "_")
