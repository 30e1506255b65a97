"""Heaps and their messages as tables, JSON lines and text for people."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw
from rich.table import Table
from rich.text import Text

from topics.cli.lines import encode
from topics.cli.pretty import moment
from topics.cli.screen import printable
from topics.client import Message
from topics.heapmodel import DeadMessage, HeapInfo, HeapStats, PeekedMessage

_COUNTS = ("ready_messages", "in_flight_messages", "delayed_messages", "dlq_messages", "total_messages")


def heap_fields(info: HeapInfo) -> dict[str, Any]:
    """A heap in one flat object."""
    stats = info.stats or HeapStats()
    counts = {name: getattr(stats, name) for name in HeapStats.__struct_fields__ if name != "partitions"}
    config: dict[str, Any] = msgspec.to_builtins(info.config)
    return {"heap": info.topic} | config | counts | {"warnings": list(info.warnings)}


def heaps_table() -> Table:
    table = Table(header_style="bold", title_justify="left")
    table.add_column("heap", overflow="fold", style="cyan")
    for name in ("mode", "partitions", "ready", "in flight", "delayed", "dead", "messages", "retries", "time-outs"):
        table.add_column(name, justify="right")
    table.add_column("dead letters go to", overflow="fold")
    return table


def add_heap(table: Table, fields: Mapping[str, Any]) -> None:
    counts = [f"{fields[name]:,}" for name in (*_COUNTS, "total_retries", "total_timeouts")]
    table.add_row(
        Text(fields["heap"]), fields["mode"], str(fields["partitions"]), *counts, Text(fields["dlq_topic"] or "-")
    )


# ---- messages


def message_line(message: Message) -> bytes:
    return encode(
        {
            "message_id": message.id,
            "priority": message.priority,
            "partition": message.partition,
            "attempts": message.attempts,
            "lease_token": message.lease_token,
            "lease_deadline_ms": message.deadline_ms,
            "meta": dict(message.meta),
        }
        | _payload(message.payload, message.is_json)
    )


def message_text(message: Message) -> Text:
    """`01M7… priority 5, lease 0198…-4 until 12:00:03  {"send":"welcome"}`."""
    payload = _shown(message.payload, message.is_json)
    until = moment(message.deadline_ms, "seconds")
    return _text(message.id, f"priority {message.priority}, lease {message.lease_token} until {until}", payload)


def peeked_line(message: PeekedMessage) -> bytes:
    fields = {name: getattr(message, name) for name in PeekedMessage.__struct_fields__}
    return encode(_without(fields) | _payload(message.payload, message.is_json))


def peeked_text(message: PeekedMessage) -> Text:
    attempts = f", failed {message.attempts}×" if message.attempts else ""
    about = f"priority {message.priority}, {message.state.value}{attempts}"
    return _text(message.message_id, about, _shown(message.payload, message.is_json))


def dead_line(message: DeadMessage) -> bytes:
    fields = {name: getattr(message, name) for name in DeadMessage.__struct_fields__ if name != "history"}
    history = [msgspec.structs.asdict(failed) for failed in message.history]
    return encode(_without(fields) | {"history": history} | _payload(message.payload, message.is_json))


def dead_text(message: DeadMessage) -> Text:
    about = f"priority {message.priority}, died {moment(message.died_ms, 'seconds')} of {message.reason}"
    return _text(message.message_id, about, _shown(message.payload, message.is_json))


def _without(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What a message has, without its payload, which is told in another way."""
    return {name: value for name, value in fields.items() if value is not None and name not in ("payload", "is_json")}


def _payload(payload: bytes, is_json: bool) -> dict[str, Any]:
    return {"payload_json": Raw(payload)} if is_json else {"payload": base64.b64encode(payload).decode()}


def _shown(payload: bytes, is_json: bool) -> str:
    return payload.decode() if is_json else f"{len(payload):,} bytes: {payload[:60]!r}"


def _text(message_id: str, about: str, payload: str) -> Text:
    return Text.assemble((message_id, "cyan"), " ", (printable(about), "dim"), "  ", printable(payload))
