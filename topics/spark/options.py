"""What a user says with `.option(…)`, checked once, before anything is asked of a server.

An option comes from the reader or writer, then from what `topics.spark.connect` set for the session, then, for `url`
and `key`, from the environment. Names are not case sensitive, as Spark's are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from os import environ
from typing import Final

from topics.errors import InvalidRequest
from topics.limits import SECOND_MS, WAIT_MS_MAX

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
INFER: Final = "infer"
ROW: Final = "row"
FAIL: Final = "fail"
SERVER: Final = "server"
LAKE: Final = "lake"

_ENVIRONMENT: Final = {"url": "TOPICS_URL", "key": "TOPICS_API_KEY"}
_DEFAULTS: Final = {
    "url": "",
    "key": "",
    "topic": "",
    "partitions": "",
    "startingSeq": EARLIEST,
    "endingSeq": LATEST,
    "startingTimestamp": "",
    "endingTimestamp": "",
    "tags": "",
    "node": "",
    "schema": "",
    "onGap": FAIL,
    "pushdown": "false",
    "rowsPerTask": "1000000",
    "maxRowsPerTrigger": "0",
    "maxBytesPerTrigger": "0",
    "waitMs": "1000",
    "timeoutMs": "60000",
    "jobId": "",
    "producerId": "",
    "create": "true",
    "history": SERVER,
    "location": "",
}
_BY_LOWER: Final = {name.lower(): name for name in _DEFAULTS}
_TYPO_LIKENESS: Final = 0.8


@dataclass(frozen=True)
class Options:
    """All of them, with their types. `key` is not in the repr: what is shown ends up in logs."""

    url: str
    topics: tuple[str, ...]
    """Names, or prefixes with a `*` behind them."""
    key: str = field(default="", repr=False)
    partitions: tuple[int, ...] = ()
    """Only these; all when it is empty."""
    starting_seq: int | str = EARLIEST
    ending_seq: int | str = LATEST
    starting_ms: int | None = None
    ending_ms: int | None = None
    """Records stamped from `starting_ms` on and before `ending_ms`."""
    tags: tuple[str, ...] = ()
    """Tags, or prefixes with a `*` behind them; a record with any of them is read."""
    node: str = ""
    """Who reads: records of this node are passed over where a topic says so."""
    value_schema: str = ""
    on_gap: str = FAIL
    pushdown: bool = False
    """Whether filters narrow down what is read; then the DataFrame is good for one query that names it once."""
    rows_per_task: int = 1_000_000
    rows_per_trigger_max: int = 0
    bytes_per_trigger_max: int = 0
    wait_ms: int = 1 * SECOND_MS
    timeout_ms: int = 60 * SECOND_MS
    """How long a server that is away or busy is asked again."""
    job_id: str = ""
    producer_id: str = ""
    create: bool = True
    history: str = SERVER
    location: str = ""
    """Of the lake; the one that a topic's archive reported when it is not said."""

    @property
    def is_wild(self) -> bool:
        return any(name.endswith("*") for name in self.topics)


def parse_options(given: Mapping[str, str], preset: Mapping[str, str] | None = None) -> Options:
    """The options of one reader or writer; `preset` are those of the session."""
    said = {name.lower(): value for name, value in (preset or {}).items()}
    said |= {name.lower(): value for name, value in given.items()}
    _refuse_typos(said)
    values = {name: said.get(name.lower(), default) for name, default in _DEFAULTS.items()}
    for name, variable in _ENVIRONMENT.items():
        values[name] = values[name] or environ.get(variable, "")
    if not values["url"]:
        raise _refuse("url", "", "the address of a server: .option('url', …), topics.spark.connect or TOPICS_URL")
    on_gap = values["onGap"].lower()
    if on_gap not in (ROW, FAIL):
        raise _refuse("onGap", values["onGap"], "row (a gap becomes a row) or fail")
    history = values["history"].strip().lower()
    if history not in (SERVER, LAKE):
        raise _refuse("history", values["history"], "server (what is there now) or lake (with what was archived)")
    return Options(
        url=values["url"],
        key=values["key"],
        topics=_topics(values["topic"]),
        partitions=tuple(_number("partitions", text) for text in _items(values["partitions"])),
        starting_seq=_seq("startingSeq", values["startingSeq"]),
        ending_seq=_seq("endingSeq", values["endingSeq"]),
        starting_ms=_time("startingTimestamp", values["startingTimestamp"]),
        ending_ms=_time("endingTimestamp", values["endingTimestamp"]),
        tags=_items(values["tags"]),
        node=values["node"],
        value_schema=values["schema"].strip(),
        on_gap=on_gap,
        pushdown=_flag("pushdown", values["pushdown"]),
        rows_per_task=max(1, _number("rowsPerTask", values["rowsPerTask"])),
        rows_per_trigger_max=_number("maxRowsPerTrigger", values["maxRowsPerTrigger"]),
        bytes_per_trigger_max=_number("maxBytesPerTrigger", values["maxBytesPerTrigger"]),
        wait_ms=min(_number("waitMs", values["waitMs"]), WAIT_MS_MAX),
        timeout_ms=_number("timeoutMs", values["timeoutMs"]),
        job_id=values["jobId"],
        producer_id=values["producerId"],
        create=_flag("create", values["create"]),
        history=history,
        location=values["location"].strip(),
    )


def _refuse_typos(said: Mapping[str, str]) -> None:
    """Spark passes on options of its own, so what is not known is refused only when it looks like one of ours."""
    for name in said:
        if name not in _BY_LOWER and (near := get_close_matches(name, _BY_LOWER, 1, _TYPO_LIKENESS)):
            raise InvalidRequest(
                f'there is no option "{name}"; {_BY_LOWER[near[0]]} may be meant', field=name, expected=list(_DEFAULTS)
            )


def _items(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.strip() for item in text.split(",") if item.strip()))


def _topics(text: str) -> tuple[str, ...]:
    names = _items(text)
    for name in names:
        if "*" in name[:-1]:
            raise _refuse("topic", name, "names, or prefixes with one * behind them, with commas between")
    return names


def _number(name: str, text: str) -> int:
    if not (text.strip().isascii() and text.strip().isdecimal()):
        raise _refuse(name, text, "a whole number from 0")
    return int(text)


def _seq(name: str, text: str) -> int | str:
    word = text.strip().lower()
    return word if word in (EARLIEST, LATEST) else _number(name, text)


def _flag(name: str, text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise _refuse(name, text, "true or false")
    return text.strip().lower() == "true"


def _time(name: str, text: str) -> int | None:
    """Milliseconds since the epoch, or ISO 8601, in UTC unless it says otherwise."""
    text = text.strip()
    if not text:
        return None
    if text.isascii() and text.isdecimal():
        return int(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise _refuse(name, text, "milliseconds since the epoch, or a time like 2026-01-31T12:00:00Z") from None
    found = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return int(found.timestamp() * SECOND_MS)


def _refuse(name: str, value: str, expected: str) -> InvalidRequest:
    found = f'not "{value}"' if value else "and it is missing"
    return InvalidRequest(f"option {name} must be {expected}, {found}", field=name, expected=expected)
