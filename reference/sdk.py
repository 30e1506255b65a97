"""docs/SDK.md: the public names of the package, out of their signatures and docstrings."""

from __future__ import annotations

import ast
import enum
import inspect
from collections.abc import Callable, Iterator
from textwrap import dedent
from typing import Any

import msgspec

import topics
import topics.sync
import topics.testing
from reference import failures
from reference.markdown import code, first_sentence, prose, table
from topics.client import fields, heap, pipeline, produceroptions, router
from topics.server.schemas import COMPONENTS

_INTRODUCTION = """\
# Python SDK

Generated from the package by `make docs`; do not edit. `help(topics.Topic)` says the same.

`topics.connect` and `topics.open` give the same `Client`. Everything is asyncio; [`topics.sync`](#topicssync) has the
same names for plain code. The package is typed (`py.typed`). Names that are not on this page may change.
"""

SECTIONS: dict[str, tuple[str, ...]] = {
    "Begin": ("connect", "open"),
    "Clients and topics": ("Client", "Topic"),
    "Producers": ("Producer", "TopicProducer", "Delivery", "Delivered", "ProducerState", "ForgottenProducer"),
    "Queues": (
        *("Queue", "Job", "Worked", "AckedJobs", "NackedJobs", "ExtendedJobs", "CompletedJobs", "QueueState"),
        *("Redriven", "LeasePage", "JobLease", "ReadyJob"),
    ),
    "Consumer groups": (
        *("Group", "GroupBatch", "GroupState", "GroupRange", "RangeKind", "GroupMember", "AckedGroup", "NackedGroup"),
        *("ExtendedGroup", "PlacedGroup", "PausedGroup", "DroppedGroup"),
    ),
    "Heaps": (
        *("Heap", "Message", "HeapInfo", "HeapConfig", "Mode", "HeapStats", "PartitionStats", "Enqueued"),
        *("EnqueuedBatch", "PeekedMessages", "PeekedMessage", "MessageState", "AckedMessages", "NackedMessages"),
        *("ExtendedLeases", "LostLease", "Reprioritized", "Cancelled", "Purged", "MovedToDlq", "DeadMessage"),
        *("Failure", "DeadStep"),
    ),
    "Routers": ("Router", "RouterConfig", "Guarantee", "RouterState", "RouterDropped"),
    "Tables and pipelines": (
        *("Table", "TableConfig", "TableColumn", "TableFormat", "TableState", "TableRoute", "TableDropped"),
        *("Pipeline", "PipelineConfig", "PipelineKind", "PipelineOptions", "PipelineStream", "PipelineTable"),
        *("PipelineState", "PipelineCondition", "PipelineReport", "RunState", "RouteProgress", "LogLine"),
        *("PipelineOrders", "PipelineDropped"),
    ),
    "Accounts": (
        *("Keys", "NewKey", "KeyState", "KeyStatus", "Users", "NewLink", "UserState", "UserStatus", "Role"),
        *("UserDropped", "Sessions", "SessionState", "SessionEnded", "Audit", "AuditEntry", "AuditVerdict"),
    ),
    "SQL": ("SqlResult", "SqlColumn", "SqlTombstone"),
    "Cursors": ("Cursor", "CursorStore", "FileCursors", "MemoryCursors"),
    "What comes back": (
        *("Record", "Gap", "Page", "Tombstone", "Written", "Deleted", "TopicState", "Configured", "Dropped"),
        *("StageState", "Published", "Aborted", "ArchiveState", "ArchiveDropped"),
    ),
    "Configs": ("TopicConfig", "TopicType", "Durability", "Discard", "Reason"),
    "Tracing": ("trace_context",),
}
"""Where each public name stands. `errors`, `sync` and `__version__` have sections of their own, or need none."""
CONFIG = "The config of a topic: every field has its value."
CONSTRUCTED = {"FileCursors", "MemoryCursors"}
"""Classes that a program makes objects of; all others come from a client."""

KEYWORDS: dict[str, type] = {
    "ConfigFields": fields.ConfigFields,
    "RecordFields": fields.RecordFields,
    "ProducerFields": produceroptions.ProducerFields,
    "HeapFields": heap.HeapFields,
    "MessageFields": heap.MessageFields,
    "RouterFields": router.RouterFields,
    "PipelineFields": pipeline.PipelineFields,
}
KEYWORD_NOTES: dict[type, type] = {
    produceroptions.ProducerFields: produceroptions.ProducerOptions,
    router.RouterFields: topics.RouterConfig,
    pipeline.PipelineFields: topics.PipelineOptions,
}
"""Where the fields of keywords are explained, unless with themselves."""


def as_markdown() -> str:
    """The text of docs/SDK.md."""
    text = _INTRODUCTION + "\n"
    for section, names in SECTIONS.items():
        text += f"## {section}\n\n" + "".join(_name(name, getattr(topics, name)) for name in names)
    text += "## Keywords\n\nWhat `**config`, `**options` and the records of a write may hold.\n\n"
    text += "".join(_keywords(name, kind) for name, kind in KEYWORDS.items())
    text += "## topics.sync\n\n" + prose(topics.sync.__doc__ or "") + _synchronous()
    text += "## topics.errors\n\nOne tree: who catches a parent catches its children. Each has `code`, `message`, "
    text += "`detail` and `request_id`.\n\n" + failures.as_table()
    text += "## topics.testing\n\n" + prose(topics.testing.__doc__ or "") + _testing()
    return text.rstrip() + "\n"


def _name(name: str, value: Any) -> str:
    text = f"### {name}\n\n"
    if not inspect.isclass(value):
        return text + code(_signature(f"topics.{name}", value)) + prose(inspect.getdoc(value) or "")
    text += prose(value.__dict__["__doc__"] if value is not topics.TopicConfig else CONFIG)
    if issubclass(value, enum.Enum):
        return text + _members(value)
    if issubclass(value, msgspec.Struct):
        return text + _struct(value)
    if name in CONSTRUCTED:
        text += code(_signature(f"topics.{name}", value.__init__))
    return text + "".join(_method(name, each, method) for each, method in _methods(value))


def _methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Those of the class, behind those of the classes of ours that it stands on."""
    ours = [each for each in reversed(kind.__mro__) if each.__module__.startswith("topics.")]
    members = ((name, value) for each in ours for name, value in each.__dict__.items())
    return ((name, value) for name, value in members if not name.startswith("_") and _is_told(value))


def _is_told(value: Any) -> bool:
    return (inspect.isfunction(value) or isinstance(value, property)) and bool(inspect.getdoc(value))


def _method(owner: str, name: str, method: Any) -> str:
    if isinstance(method, property):
        return f"#### {owner}.{name}\n\n{prose(inspect.getdoc(method) or '')}"
    begin = "await " if inspect.iscoroutinefunction(method) else ""
    if inspect.isasyncgenfunction(method):
        begin = "async for … in "
    holder = "producer" if owner.endswith("Producer") else owner.lower()
    shown = f"{begin}{_signature(f'{holder}.{name}', method)}"
    return f"#### {owner}.{name}\n\n{code(shown)}{prose(inspect.getdoc(method) or '')}"


def _signature(name: str, function: Callable[..., Any]) -> str:
    """A call with its parameters, one a line when they do not fit into one."""
    signature = inspect.signature(function)
    parameters: list[str] = []
    starred = False
    for each in signature.parameters.values():
        if each.name == "self":
            continue
        if each.kind is each.KEYWORD_ONLY and not starred:
            parameters.append("*")
            starred = True
        parameters.append(_parameter(each))
    returned = _annotation(signature.return_annotation)
    behind = "" if returned in ("", "None") else f" -> {returned}"
    line = f"{name}({', '.join(parameters)}){behind}"
    if len(line) <= 100:
        return line
    return f"{name}(\n" + "".join(f"    {each},\n" for each in parameters) + f"){behind}"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
    annotation = _annotation(parameter.annotation)
    text = stars + parameter.name + (f": {annotation}" if annotation else "")
    if parameter.default is not parameter.empty:
        default = "…" if callable(parameter.default) else repr(parameter.default)
        text += f" = {default}"
    return text


def _annotation(annotation: Any) -> str:
    if annotation is inspect.Signature.empty:
        return ""
    text = str(annotation if isinstance(annotation, str) else getattr(annotation, "__name__", annotation))
    return text.removeprefix("Unpack[").removesuffix("]") if text.startswith("Unpack[") else text


def _members(kind: type[enum.Enum]) -> str:
    notes = _notes(kind)
    return table(("value", "what it is"), [(f"`{member.value}`", notes.get(member.name, "")) for member in kind])


def _struct(kind: type[msgspec.Struct]) -> str:
    notes = _config_notes() if kind is topics.TopicConfig else _notes(kind)
    annotations = kind.__annotations__
    rows = [(f"`{name}`", f"`{annotations[name]}`", notes.get(name, "")) for name in annotations]
    for name, value in kind.__dict__.items():
        function = value.fget if isinstance(value, property) else getattr(value, "func", None)
        if function is not None and not name.startswith("_"):
            told = first_sentence(function.__doc__ or "")
            rows.append((f"`{name}`", f"`{_annotation(inspect.signature(function).return_annotation)}`", told))
    return table(("field", "type", "what it is"), rows)


def _config_notes() -> dict[str, str]:
    """The fields of a config are explained where the wire is."""
    return {name: about.get("description", "") for name, about in COMPONENTS["TopicConfig"]["properties"].items()}


def _keywords(name: str, kind: type) -> str:
    notes = _config_notes() if kind is fields.ConfigFields else _notes(KEYWORD_NOTES.get(kind, kind))
    rows = [(f"`{field}`", f"`{_bare(text)}`", notes.get(field, "")) for field, text in _sources(kind)]
    return f"### {name}\n\n{prose(kind.__doc__ or '')}" + table(("keyword", "type", "what it is"), rows)


def _bare(text: str) -> str:
    for wrapper in ("Required", "NotRequired"):
        if text.startswith(f"{wrapper}["):
            return text.removeprefix(f"{wrapper}[").removesuffix("]")
    return text


def _body(kind: type) -> list[ast.stmt]:
    tree = ast.parse(dedent(inspect.getsource(kind)))
    (definition,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    return definition.body


def _sources(kind: type) -> Iterator[tuple[str, str]]:
    """Each annotated name with its type as it is written."""
    for node in _body(kind):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, ast.unparse(node.annotation).replace("'", '"')


def _notes(kind: type) -> dict[str, str]:
    """The strings that stand below the fields of a class."""
    found: dict[str, str] = {}
    name = ""
    for node in _body(kind):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and name:
            found[name] = first_sentence(str(node.value.value))
            name = ""
        else:
            name = ""
    return found


def _synchronous() -> str:
    rows = []
    for name in topics.sync.__all__:
        value = getattr(topics.sync, name)
        told = first_sentence(inspect.getdoc(value) or "")
        methods = ""
        if inspect.isclass(value):
            methods = ", ".join(f"`{each}`" for each in value.__dict__ if not each.startswith("_"))
        rows.append((f"`{name}`", told, methods))
    return table(("name", "what it is", "methods"), rows)


def _testing() -> str:
    rows = []
    for name in topics.testing.__all__:
        value = getattr(topics.testing, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            rows.append((f"`{name}`", first_sentence(_told(value))))
    return table(("name", "what it is"), rows)


def _told(value: Any) -> str:
    """The docstring of a name, and where it has none of its own that of its module."""
    own = value.__doc__ or ""
    inherited = inspect.isclass(value) and (own.startswith(f"{value.__name__}(") or "__doc__" not in value.__dict__)
    if own and not inherited and not own.startswith("Enum where"):
        return str(own)
    return inspect.getdoc(inspect.getmodule(value)) or ""
