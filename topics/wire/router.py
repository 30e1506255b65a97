"""Routers in JSON: the body that puts one, and what is told of one, as the server writes it and a client reads it.

On the wire a router is one flat object, its config beside how far it has come.
"""

from __future__ import annotations

from typing import Any

import msgspec

from topics.core.match import parse_match
from topics.core.names import check_topic, shorten
from topics.errors import InvalidRequest
from topics.routermodel import Guarantee, RouterConfig, RouterState
from topics.wire import json

CONFIG_FIELDS = RouterConfig.__struct_fields__
PROGRESS_FIELDS = tuple(name for name in RouterState.__struct_fields__ if name not in ("router", "config", "created"))
SUMMARY_FIELDS = ("source", "dest", "guarantee", "forwarded_total", "lag_records", "lag_ms", "stalled")
GUARANTEES = " or ".join(f'"{each.value}"' for each in Guarantee)


class _Body(msgspec.Struct, kw_only=True):
    """As a client says it: null is the same as leaving a field out."""

    source: str
    dest: str
    preserve_node: bool | None = None
    preserve_tag: bool | None = None
    create_dest: bool | None = None
    filter: Any = None
    allow_cycle: bool | None = None
    guarantee: str | None = None
    backfill: bool | None = None


_decoder = msgspec.json.Decoder(_Body)


def decode_router(body: bytes) -> RouterConfig:
    """The router that a body describes, or `InvalidRequest` naming the wrong field. Unknown fields are ignored."""
    parsed = json.decode(_decoder, body or b"{}")
    json.refuse_repeated_keys(body, lambda root: [("", root)])
    check_topic(parsed.source, "source")
    if check_topic(parsed.dest, "dest") == parsed.source:
        expected = "another topic than the source"
        message = f'dest must be {expected}, and both are "{shorten(parsed.dest)}"'
        raise InvalidRequest(message, field="dest", value=parsed.dest, expected=expected)
    said = {name: value for name in CONFIG_FIELDS if (value := getattr(parsed, name)) is not None}
    if parsed.filter is not None:
        said["filter"] = tuple(parse_match(parsed.filter, "filter").as_wire())
    if parsed.guarantee is not None:
        said["guarantee"] = _guarantee(parsed.guarantee)
    return RouterConfig(**said)


def _guarantee(text: str) -> Guarantee:
    try:
        return Guarantee(text)
    except ValueError:
        shown = shorten(text)
        message = f'guarantee must be {GUARANTEES}, not "{shown}"'
        raise InvalidRequest(message, field="guarantee", value=shown, expected=GUARANTEES) from None


# ---- what is told


def router_fields(state: RouterState) -> dict[str, object]:
    """All of a router."""
    fields: dict[str, object] = {"router": state.router}
    fields |= {name: getattr(state.config, name) for name in CONFIG_FIELDS}
    return fields | {name: getattr(state, name) for name in PROGRESS_FIELDS}


def router_summary(state: RouterState) -> dict[str, object]:
    """What a list shows of it."""
    fields = router_fields(state)
    return {name: fields[name] for name in ("router", *SUMMARY_FIELDS)}


def router_state(fields: dict[str, Any]) -> RouterState:
    """A router out of what was told of it; `msgspec.ValidationError` when it is none."""
    config = {name: fields[name] for name in CONFIG_FIELDS if name in fields}
    rest = {name: value for name, value in fields.items() if name not in config}
    return msgspec.convert(rest | {"config": config}, RouterState)
