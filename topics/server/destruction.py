"""Calls that destroy: noted in the audit log before they begin, and again when they have ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

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
    return await audit.carry_out(action, name, work, key=principal.key_id, over=over, request_id=request_id, **detail)
