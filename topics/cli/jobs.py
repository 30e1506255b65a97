"""Jobs and queues as a command shows them: lines of JSON for programs, tables and sentences for people."""

from __future__ import annotations

from typing import Any

from rich.table import Table
from rich.text import Text

from topics.cli.lines import Origin, encode
from topics.cli.pretty import moment, record_text
from topics.cli.screen import printable
from topics.client import Job
from topics.model import Record, TopicState

COUNTS = ("ready", "in_flight", "delayed", "dead_lettered")


def job_line(job: Job) -> bytes:
    """A job as it comes over the wire."""
    fields: dict[str, Any] = {
        "$seq": job.seq,
        "lease_id": job.lease_id,
        "deadline": job.deadline_ms,
        "deliveries": job.deliveries,
        "$ts": job.ts,
    }
    if job.node is not None:
        fields["$node"] = job.node
    if job.tag is not None:
        fields["$tag"] = job.tag
    if job.meta:
        fields["meta"] = dict(job.meta)
    return encode(fields | {"data": job.data})


def job_text(job: Job) -> Text:
    """The record, and who has it until when."""
    record = Record(job.seq, job.ts, job.data, job.node, job.tag, dict(job.meta) or None)
    line = record_text(record, Origin())
    line.append(f"  {job.lease_id} until {moment(job.deadline_ms, 'seconds')}, delivery {job.deliveries}", "dim")
    return line


def queue_fields(states: list[TopicState]) -> dict[str, Any]:
    """A queue as a whole: its partitions added up."""
    found = [state.queue for state in states if state.queue is not None]
    errors = [queue.dead_letter_error for queue in found if queue.dead_letter_error is not None]
    sums = {name: sum(getattr(queue, name) for queue in found) for name in COUNTS}
    config = states[0].config
    return {
        "queue": states[0].topic,
        **sums,
        "lease_ms": config.lease_ms,
        "max_deliveries": config.max_deliveries,
        "dead_letter": config.dead_letter,
        "dead_letter_error": errors[0] if errors else None,
        "partitions": len(states),
    }


def queues_table() -> Table:
    table = Table(header_style="bold", title_justify="left")
    table.add_column("queue", overflow="fold", style="cyan")
    for name in COUNTS:
        table.add_column(name.replace("_", " "), justify="right")
    table.add_column("dead letters go to", overflow="fold")
    return table


def add_queue(table: Table, fields: dict[str, Any]) -> None:
    trouble = fields["dead_letter_error"]
    where = fields["dead_letter"] or "nowhere"
    told = Text(where) if trouble is None else Text(f"{where}: {printable(trouble)}", style="bold red")
    table.add_row(Text(fields["queue"]), *(f"{fields[name]:,}" for name in COUNTS), told)
