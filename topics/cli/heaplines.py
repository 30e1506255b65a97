"""Heaps and their messages as tables, JSON lines and text for people."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw
from rich.table import Table
from rich.text import Text

from topics.cli.grid import fields_grid
from topics.cli.lines import encode
from topics.cli.pretty import moment
from topics.cli.screen import printable
from topics.client import Message
from topics.heapmodel import DeadMessage, HeapInfo, HeapStats, PeekedMessage
from topics.settings import Unit, show

_COUNTS = {
    "ready": "ready_messages",
    "in flight": "in_flight_messages",
    "delayed": "delayed_messages",
    "dead": "dlq_messages",
}
_TOTALS = {
    "enqueued": "total_enqueues",
    "popped": "total_pops",
    "acked": "total_acks",
    "given back": "total_nacks",
    "retries": "total_retries",
    "time-outs": "total_timeouts",
    "died": "total_dead_lettered",
}
"""Since it was made."""


def heap_fields(info: HeapInfo) -> dict[str, Any]:
    """A heap in one flat object."""
    stats = info.stats or HeapStats()
    counts = {name: getattr(stats, name) for name in HeapStats.__struct_fields__ if name != "partitions"}
    config: dict[str, Any] = msgspec.to_builtins(info.config)
    return {"heap": info.topic} | config | counts | {"warnings": list(info.warnings)}


def heaps_table() -> Table:
    table = Table(header_style="bold", title_justify="left")
    table.add_column("heap", overflow="fold", style="cyan")
    for name in ("mode", "partitions", *_COUNTS):
        table.add_column(name, justify="right", no_wrap=True)
    return table


def add_heap(table: Table, fields: Mapping[str, Any]) -> None:
    counts = [f"{fields[name]:,}" for name in _COUNTS.values()]
    table.add_row(Text(fields["heap"]), fields["mode"], str(fields["partitions"]), *counts)


def heap_grid(fields: Mapping[str, Any]) -> Table:
    """One heap: what it is, how much is in it, how it was set up, and what happened."""
    order = "lowest first" if fields["mode"] == "min" else "highest first"
    kept_ms = fields["dlq_retention_ms"] or fields["retention_ms"]
    said = {"heap": fields["heap"], "mode": f"{fields['mode']}: {order}", "partitions": f"{fields['partitions']:,}"}
    said |= {label: f"{fields[name]:,}" for label, name in _COUNTS.items()}
    said |= {
        "durability": fields["durability"],
        "lease": show(fields["visibility_timeout_ms"], Unit.MS),
        "max retries": f"{fields['max_retries']:,}",
        "max payload": show(fields["max_payload_bytes"], Unit.BYTES),
        "top k bound": f"{fields['top_k_bound']:,}",
        "replication factor": f"{fields['replication_factor']:,}",
        "compression": "yes" if fields["compression"] else "no",
        "dead letters go to": fields["dlq_topic"] or "nowhere: nothing dies",
        "dead letters stay": show(kept_ms, Unit.MS) if kept_ms else "for ever",
    }
    said |= {label: f"{fields[name]:,}" for label, name in _TOTALS.items()}
    return fields_grid(
        (label, Text(printable(value), style="bold" if label == "heap" else "")) for label, value in said.items()
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
