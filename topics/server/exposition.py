"""Metric families, and how they are written: Prometheus text 0.0.4, or a JSON snapshot of the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from topics.storage.walmetrics import Histogram

TEXT = b"text/plain; version=0.0.4; charset=utf-8"
INFINITE = "+Inf"

Labels = tuple[tuple[str, str], ...]
Value = int | float | Histogram

_LABEL_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_DOC_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})


@dataclass(slots=True)
class Family:
    """One name with its kind and its samples, of which each has other labels."""

    name: str
    kind: str
    doc: str
    samples: list[tuple[Labels, Value]] = field(default_factory=list)

    def add(self, value: Value, *labels: tuple[str, str]) -> None:
        self.samples.append((labels, value))


def gauge(name: str, doc: str, *values: Value) -> Family:
    return Family(name, "gauge", doc, [((), value) for value in values])


def counter(name: str, doc: str, *values: Value) -> Family:
    return Family(name, "counter", doc, [((), value) for value in values])


def histogram(name: str, doc: str, *values: Histogram) -> Family:
    return Family(name, "histogram", doc, [((), value) for value in values])


def as_text(families: Iterable[Family]) -> bytes:
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.name} {family.doc.translate(_DOC_ESCAPES)}\n")
        lines.append(f"# TYPE {family.name} {family.kind}\n")
        for labels, value in family.samples:
            if isinstance(value, Histogram):
                lines += _histogram_lines(family.name, labels, value)
            else:
                lines.append(_line(family.name, labels, value))
    return "".join(lines).encode()


def _histogram_lines(name: str, labels: Labels, value: Histogram) -> Iterator[str]:
    buckets = _buckets(value)
    for bound, count in buckets.items():
        yield _line(f"{name}_bucket", (*labels, ("le", bound)), count)
    yield _line(f"{name}_sum", labels, value.total)
    yield _line(f"{name}_count", labels, buckets[INFINITE])


def _line(name: str, labels: Labels, value: int | float) -> str:
    if not labels:
        return f"{name} {value}\n"
    inside = ",".join(f'{key}="{text.translate(_LABEL_ESCAPES)}"' for key, text in labels)
    return f"{name}{{{inside}}} {value}\n"


def _buckets(value: Histogram) -> dict[str, int]:
    """By upper bound, how many values are at most that; they were counted by another thread, so they are read once."""
    counts = accumulate(list(value.counts))
    return dict(zip([*map(str, value.bounds), INFINITE], counts, strict=True))


def as_fields(families: Iterable[Family]) -> dict[str, object]:
    """For JSON, by name: the value of a family without labels, else a list of its samples."""
    return {family.name: _plain(family) for family in families}


def _plain(family: Family) -> object:
    values = [dict(labels) | {"value": _plain_value(value)} for labels, value in family.samples]
    return values[0]["value"] if len(values) == 1 and not family.samples[0][0] else values


def _plain_value(value: Value) -> object:
    if isinstance(value, Histogram):
        buckets = _buckets(value)
        return {"buckets": buckets, "sum": value.total, "count": buckets[INFINITE]}
    return value


def prefers_json(accept: str) -> bool:
    """Whether an `Accept` header would rather have JSON than text; text when it says nothing of either."""
    ranges = [_media_range(part) for part in accept.lower().split(",")]
    qualities = {name: quality for name, quality in ranges if quality > 0}
    anything = qualities.get("*/*", 0.0)
    json = qualities.get("application/json", qualities.get("application/*", 0.0))
    return json > max(qualities.get("text/plain", qualities.get("text/*", 0.0)), anything)


def _media_range(text: str) -> tuple[str, float]:
    name, *parameters = [part.strip() for part in text.split(";")]
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        if key.strip() == "q":
            try:
                return name, float(value)
            except ValueError:
                return name, 0.0
    return name, 1.0
