"""Asking the server itself, beside the page, for what a test sets up and for what came of an action."""

from __future__ import annotations

from typing import Any

from tests.e2e.served import Served


def ask(server: Served, method: str, path: str, body: object = None) -> Any:
    """The answer to a request that must be a success."""
    with server.connect() as caller:
        status, answer = caller.ask(method, path, body)
    assert status < 300, answer
    return answer
