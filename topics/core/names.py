"""Names of topics and routers: the rule, and the refusal that explains it."""

from __future__ import annotations

import re
from functools import lru_cache

from topics.errors import InvalidRequest
from topics.limits import NAME_BYTES_MAX, NODE_BYTES_MAX

TOPIC_RULE = f"^[A-Za-z0-9][A-Za-z0-9._:-]{{0,{NAME_BYTES_MAX - 1}}}$"
ROUTER_RULE = f"^[A-Za-z0-9][A-Za-z0-9._:>-]{{0,{NAME_BYTES_MAX - 1}}}$"
"""A router may carry its default name, `source->dest`."""

SHOWN_CHARS = 40

# `fullmatch` does the anchoring: `$` alone would let a trailing newline through.
_topic = re.compile(TOPIC_RULE.strip("^$"))
_router = re.compile(ROUTER_RULE.strip("^$"))


@lru_cache(maxsize=4096)
def check_topic(name: str, field: str = "topic") -> str:
    """`name`, when it may name a topic. Only good names are remembered."""
    return _check(_topic, TOPIC_RULE, "a topic name", name, field)


@lru_cache(maxsize=256)
def check_router(name: str, field: str = "router") -> str:
    """`name`, when it may name a router."""
    return _check(_router, ROUTER_RULE, "a router name", name, field)


@lru_cache(maxsize=256)
def check_table(name: str, field: str = "table") -> str:
    """`name`, when it may name a registered table."""
    return _check(_topic, TOPIC_RULE, "the name of a table", name, field)


@lru_cache(maxsize=256)
def check_pipeline(name: str, field: str = "pipeline") -> str:
    """`name`, when it may name a pipeline."""
    return _check(_topic, TOPIC_RULE, "the name of a pipeline", name, field)


@lru_cache(maxsize=256)
def check_archive(name: str, field: str = "archive") -> str:
    """`name`, when it may name an archive."""
    return _check(_topic, TOPIC_RULE, "the name of an archive", name, field)


@lru_cache(maxsize=4096)
def check_group(name: str, field: str = "group") -> str:
    """`name`, when it may name a consumer group."""
    return _check(_topic, TOPIC_RULE, "the name of a group", name, field)


def check_node(node: str, field: str = "node", bytes_max: int = NODE_BYTES_MAX) -> str:
    """`node`, when it may name a worker."""
    if isinstance(node, str) and 1 <= len(node.encode("utf-8", "replace")) <= bytes_max:
        return node
    expected = f"a string of 1 to {bytes_max} bytes"
    shown = shorten(node)
    raise InvalidRequest(f'{field} must be {expected}, not "{shown}"', field=field, value=shown, expected=expected)


def shorten(value: object) -> str:
    """A value a client sent, short enough to send back in an error."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= SHOWN_CHARS else text[: SHOWN_CHARS - 1] + "…"


def _check(pattern: re.Pattern[str], rule: str, what: str, name: str, field: str) -> str:
    if isinstance(name, str) and pattern.fullmatch(name):
        return name
    shown = shorten(name)
    raise InvalidRequest(
        f'{field} "{shown}" is not {what}: 1 to {NAME_BYTES_MAX} characters matching {rule}',
        field=field,
        value=shown,
        expected=rule,
    )
