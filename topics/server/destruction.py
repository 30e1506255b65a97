"""Calls that destroy: noted in the audit log before they begin, and again when they fail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from topics.errors import TopicsError
from topics.server.context import Context
from topics.server.principal import Principal

T = TypeVar("T")


async def destroy(
    context: Context,
    action: str,
    name: str,
    principal: Principal,
    work: Callable[[], Awaitable[T]],
    *,
    over: str,
    request_id: str,
    **detail: Any,
) -> T:
    """Do it once its line is on the disk."""
    context.ready()
    audit = context.audit
    assert audit is not None, "there is an engine, so there is an audit log"
    await audit.note(action, name, key=principal.key_id, over=over, request_id=request_id, **detail)
    try:
        return await work()
    except TopicsError as error:
        await audit.note(
            action, name, key=principal.key_id, over=over, request_id=request_id, outcome=error.code, **detail
        )
        raise
