"""A route: one line of the table from which dispatch, authorisation, 404/405 and the OpenAPI document are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from topics.server.intake.order import Order
from topics.server.message import Reply, Request
from topics.server.pageorigins import SAFE_METHODS
from topics.server.principal import Scope

if TYPE_CHECKING:
    from topics.server.context import Context

ACTING_SCOPES = Scope.WRITE | Scope.DELETE
Handler = Callable[["Context", Request, Reply], None]
"""Answers by calling `reply`, now or later. Raises `TopicsError` for what it refuses at once."""


EVERY_TOPIC: Final = "*"


@dataclass(frozen=True, slots=True)
class Operation:
    """What the OpenAPI document says of a route."""

    summary: str
    description: str
    tag: str
    parameters: tuple[dict[str, Any], ...] = ()
    request_body: dict[str, Any] | None = None
    responses: dict[str, Any] | None = None
    """Status to response object; the common errors are added to each."""


@dataclass(frozen=True, slots=True)
class Route:
    method: str
    path: str
    """`/v0/topics/{topic}/diff`: a part in braces captures one path segment."""
    scope: Scope
    """What the key needs; `NO_SCOPE` is open to everybody."""
    handler: Handler
    operation: Operation
    name_param: str | None = None
    """The captured part that is checked against the key's prefixes."""
    probe: bool = False
    """Whether a load balancer asks it: `TOPICS_PROBE_AUTH` then says whether it takes a key after all."""
    keyed: bool = False
    """Whether it takes a key although the route itself needs no scope: each command on it needs one of its own."""
    streams: bool = False
    """Whether its answer is a stream, which counts against the caps on those and not against requests in flight."""
    takeover_param: str | None = None
    """The captured part that says which streams take over from each other, and so count as one."""
    order: Order | None = None
    """Which requests of a connection begin before this one is answered; None is what its method says."""
    noted: bool | None = None
    """Whether the dispatch notes it in the audit log; None is what its method and scope say (`auditing.py`)."""
    reads: str | None = None
    """The captured part whose topic the handler reads, or `EVERY_TOPIC`: it is called when what routers and moves bring
    there has come."""
    reads_letters: bool = False
    """Whether it reads the dead letters of that topic as well."""
    query_token: bool = False
    """Whether a stream token, or for development a key, may come as `?token=`."""

    @property
    def acts(self) -> bool:
        """Whether its requests do more than read."""
        takes_commands = self.keyed and self.streams
        return bool(self.method not in SAFE_METHODS or self.scope & ACTING_SCOPES or self.noted or takes_commands)
