"""What a call changed in the configuration of what it names, by field, for its line in the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import msgspec

from topics.core.config import as_wire, default
from topics.core.machine import Machine
from topics.model import TopicType
from topics.pipelinemodel import PipelineConfig
from topics.routermodel import RouterConfig
from topics.tablemodel import TableConfig

VALUE_CHARS_MAX: Final = 1000
"""Of one value in a line; longer ones are cut."""


class Kind(Enum):
    """What has a configuration, by the routes that change it."""

    TOPIC = ("/v0/topics/{topic}", "/v1/heaps", "/v1/heaps/{topic}")
    ROUTER = ("/v0/routers/{router}",)
    TABLE = ("/v0/tables/{table}",)
    PIPELINE = tuple(f"/v0/pipelines/{{pipeline}}{verb}" for verb in ("", "/pause", "/resume"))


def kind_of(method: str, path: str) -> Kind | None:
    """Whose configuration the calls of a route may change."""
    return None if method == "DELETE" else next((kind for kind in Kind if path in kind.value), None)


_STRUCTS: Final[Mapping[Kind, type[msgspec.Struct]]] = {
    Kind.ROUTER: RouterConfig,
    Kind.TABLE: TableConfig,
    Kind.PIPELINE: PipelineConfig,
}


class ConfigChanges:
    """Made before a call; `found` behind it."""

    def __init__(self, machine: Machine, kind: Kind, name: str) -> None:
        self._machine = machine
        self._kind = kind
        self._name = name
        self._before = _config(machine, kind, name)

    def found(self) -> dict[str, object]:
        """The fields that have another value than before, each with its old and its new one. Empty when there is
        nothing by this name now."""
        after = _config(self._machine, self._kind, self._name)
        if after is None:
            return {}
        before = self._before
        base = _defaults(self._kind, self._name, after) if before is None else before
        changed = {
            field: {"old": _shown(base.get(field)), "new": _shown(value)}
            for field, value in after.items()
            if value != base.get(field)
        }
        return {"created": True, "changed": changed} if before is None else {"changed": changed}


def _config(machine: Machine, kind: Kind, name: str) -> Mapping[str, Any] | None:
    if kind is Kind.TOPIC:
        topic = machine.topics.get(name)
        return None if topic is None else as_wire(topic.config)
    if kind is Kind.ROUTER:
        router = machine.routers.get(name)
        return None if router is None else _plain(router.config)
    if kind is Kind.TABLE:
        table = machine.catalog.tables.get(name)
        return None if table is None else _plain(table.config)
    pipeline = machine.catalog.pipelines.get(name)
    if pipeline is None or pipeline.config is None:
        return None
    return {**_plain(pipeline.config), "paused": pipeline.paused}


def _plain(config: object) -> Mapping[str, Any]:
    plain: Mapping[str, Any] = msgspec.to_builtins(config)
    return plain


def _defaults(kind: Kind, name: str, config: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a new thing has where nobody said anything."""
    if kind is Kind.TOPIC:
        return as_wire(default(name, TopicType(config["type"])))
    fields = msgspec.structs.fields(_STRUCTS[kind])
    defaults = {field.name: field.default for field in fields if field.default is not msgspec.NODEFAULT}
    return {"paused": False, **msgspec.to_builtins(defaults)}


def _shown(value: object) -> object:
    text = msgspec.json.encode(value).decode()
    return value if len(text) <= VALUE_CHARS_MAX else text[: VALUE_CHARS_MAX - 1] + "…"
