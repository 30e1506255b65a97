"""Pipelines in JSON: the body that declares one, what a runner reports, and what is told of one."""

from __future__ import annotations

from typing import Any

import msgspec

from topics.errors import InvalidRequest
from topics.limits import REPORT_LINES_MAX, REPORT_ROUTES_MAX
from topics.pipelinemodel import LogLine, PipelineReport, PipelineState
from topics.wire import json


class PipelineBody(msgspec.Struct, frozen=True, kw_only=True):
    """What stands behind AS, and the options by name."""

    definition: str
    options: dict[str, Any] = {}


class ReportBody(PipelineReport, frozen=True, kw_only=True):
    """A report, and what is new in the log of whoever sends it."""

    logs: tuple[LogLine, ...] = ()


_pipeline = msgspec.json.Decoder(PipelineBody)
_report = msgspec.json.Decoder(ReportBody)


def decode_pipeline(body: bytes) -> PipelineBody:
    """The pipeline that a body describes, or `InvalidRequest` naming the wrong field. Unknown fields are ignored."""
    parsed = json.decode(_pipeline, body or b"{}")
    json.refuse_repeated_keys(body, lambda root: [("", root)])
    return parsed


def decode_report(body: bytes) -> tuple[PipelineReport, tuple[LogLine, ...]]:
    """What a runner says, and its new lines of log."""
    parsed = json.decode(_report, body or b"{}")
    json.refuse_repeated_keys(body or b"{}", lambda root: [("", root)])
    for field, values, most in (("logs", parsed.logs, REPORT_LINES_MAX), ("routes", parsed.routes, REPORT_ROUTES_MAX)):
        if len(values) > most:
            raise InvalidRequest(
                f"{field} has {len(values)} entries, of {most} at most", field=field, expected=f"{most} at most"
            )
    if not parsed.runner:
        raise InvalidRequest("runner is empty", field="runner", expected="a name for the process that runs it")
    _check_counts("", parsed)
    for number, route in enumerate(parsed.routes):
        _check_counts(f"routes[{number}].", route)
    said = {name: getattr(parsed, name) for name in PipelineReport.__struct_fields__}
    return PipelineReport(**said), parsed.logs


def _check_counts(path: str, said: msgspec.Struct) -> None:
    """Everything that is counted or measured is 0 or more."""
    for name in said.__struct_fields__:
        value = getattr(said, name)
        if isinstance(value, int | float) and value < 0 and not name.endswith("_ts"):
            field = path + name
            raise InvalidRequest(f"{field} must be 0 or more, not {value}", field=field, expected="a number from 0")


def report_body(report: PipelineReport, lines: tuple[LogLine, ...]) -> bytes:
    return msgspec.json.encode(msgspec.structs.asdict(report) | {"logs": lines})


def pipeline_fields(state: PipelineState) -> dict[str, object]:
    """All of a pipeline."""
    fields: dict[str, object] = msgspec.structs.asdict(state)
    del fields["created"]
    return fields
