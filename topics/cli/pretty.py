"""Records and gaps as a person reads them: a line each, aligned, coloured where the terminal can."""

from __future__ import annotations

from datetime import datetime

from rich.highlighter import JSONHighlighter
from rich.text import Text

from topics.cli.lines import Origin, encode
from topics.cli.screen import printable
from topics.model import Gap, Reason, Record

_json = JSONHighlighter()

_LOST = {
    Reason.CAP: "the cap was reached",
    Reason.TTL: "they were too old",
    Reason.MIXED: "the cap was reached, or they were too old",
    Reason.RECREATED: "the topic was dropped and made anew",
    Reason.SOURCE_TRIM: "the source no longer had them",
    Reason.RESTART: "a restart that their durability does not cover",
    Reason.DAMAGE: "they were unreadable on disk",
}


def record_text(record: Record, origin: Origin) -> Text:
    """`2026-06-02 12:00:00.123  orders  17  order-1 @n1  {"sku":"A1"}`; meta goes behind the data."""
    text = Text(f"{moment(record.ts)}  ", style="dim", end="")
    line = Text.assemble(text, *_origin(origin), (f"{record.seq}", "bold green"), "  ")
    if record.tag is not None:
        line.append(f"{printable(record.tag)}  ", "yellow")
    if record.node is not None:
        line.append(f"@{printable(record.node)}  ", "blue")
    line.append_text(_json(printable(encode(record.data).decode())))
    if record.meta:
        line.append("  ")
        line.append(printable(encode(record.meta).decode()), "dim")
    return line


def gap_text(gap: Gap, origin: Origin) -> Text:
    """What is missing, so that nobody overlooks it."""
    seqs = f"{gap.gap_from}" if gap.gap_from == gap.gap_to else f"{gap.gap_from} to {gap.gap_to}"
    told = f"gap: {seqs} lost before they were read: {_LOST[gap.reason]} ({gap.reason.value})"
    return Text.assemble(*_origin(origin), (told, "bold magenta"))


def moment(ts_ms: int | None, precision: str = "milliseconds") -> str:
    """A time of the log on this machine's wall clock."""
    if ts_ms is None:
        return "never"
    try:
        return datetime.fromtimestamp(ts_ms / 1000).isoformat(" ", precision)
    except (ValueError, OverflowError, OSError):
        return f"{ts_ms} ms"


def _origin(origin: Origin) -> list[tuple[str, str]]:
    if origin.topic is None:
        return [] if origin.partition is None else [(f"/{origin.partition}  ", "cyan")]
    partition = "" if origin.partition is None else f"/{origin.partition}"
    return [(f"{origin.topic}{partition}  ", "cyan")]
