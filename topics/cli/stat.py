"""`topics stat`: a server or a directory at a glance, with its largest topics."""

from __future__ import annotations

from heapq import nlargest
from operator import itemgetter
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from topics.cli.grid import fields_grid
from topics.cli.partitions import every_topic
from topics.cli.probe import Probe
from topics.cli.screen import JsonFlag, Screen, printable, sized
from topics.cli.target import DEFAULT_TARGET, Target, require_directory
from topics.cli.topic import add_topic, topics_table, totals
from topics.client import Client
from topics.engine.fsck import total_bytes
from topics.errors import Forbidden, InvalidRequest, NotReady, Unauthorized, Unavailable
from topics.storage.fs import RealFs

LABELS = {"count": "records", "bytes": "size", "disk_bytes": "on disk", "free_bytes": "free", "answer_ms": "answers in"}


def stat(
    *,
    limit: Annotated[int, Parameter(name=["--limit", "-n"], help="How many of the largest topics.")] = 10,
    json: JsonFlag = None,
    target: Target = DEFAULT_TARGET,
) -> None:
    """Show how a server or a directory is, and its largest topics.

    For example:

        topics stat
        topics stat --dir ./elsewhere --json
    """
    if limit < 0:
        raise InvalidRequest(f"--limit must be 0 or more, not {limit}", field="limit", expected="0 or more")
    screen = Screen(json)
    about = _directory(target.dir) if target.dir is not None else _server(target)
    held, largest = target.run(lambda client: _topics(client, limit))
    # A server counts all topics, a key may see only some of them.
    about |= {name: value for name, value in held.items() if name not in about}
    if screen.as_json:
        screen.show(about | {"largest": largest}, topics_table)
        return
    screen.out.print(_grid(about))
    if largest:
        table = topics_table()
        for each in largest:
            add_topic(table, each)
        screen.out.print(table)
    if held["topics"] > len(largest):
        screen.out.print(f"{len(largest)} of {held['topics']:,} topics; `topics topic ls` lists all", style="dim")


async def _topics(client: Client, limit: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What all topics hold together, and the largest of them."""
    held = {"topics": 0, "count": 0, "bytes": 0}
    largest: list[dict[str, Any]] = []
    async for states in every_topic(client):
        whole = totals(states)
        held = {"topics": held["topics"] + 1} | {name: held[name] + whole[name] for name in ("count", "bytes")}
        largest = nlargest(limit, [*largest, whole], key=itemgetter("bytes"))
    return held, largest


def _server(target: Target) -> dict[str, Any]:
    assert target.address is not None
    probe = Probe(target.address, target.api_key)
    ready = probe.get("/v0/ready")
    if ready.status != 200:
        message = ready.error.get("message", f"it answers {ready.status}")
        raise (NotReady if ready.status == 503 else Unavailable)(f"{probe.url} is not ready: {message}")
    health, metrics = probe.get("/v0/health"), probe.get("/v0/metrics")
    if metrics.status in (401, 403):
        raise (Unauthorized if metrics.status == 401 else Forbidden)(metrics.error.get("message", "no key"))
    values = metrics.fields
    return {
        "url": probe.url,
        "version": health.fields.get("version"),
        "uptime_ms": health.fields.get("uptime_ms"),
        "answer_ms": round(ready.elapsed_ms, 3),
        "topics": values.get("topics_topics", 0),
        "count": values.get("topics_records_live", 0),
        "bytes": values.get("topics_bytes_live", 0),
        "requests": _total(values.get("topics_http_requests_total")),
        "errors": _total(values.get("topics_http_errors_total")),
        "routers": values.get("topics_routers", 0),
        "routers_stalled": values.get("topics_routers_stalled", 0),
        "loop_lag_ms": values.get("topics_loop_lag_ms"),
        "read_only": bool(values.get("topics_wal_read_only")),
    }


def _total(samples: object) -> int:
    return sum(int(sample.get("value", 0)) for sample in samples) if isinstance(samples, list) else 0


def _directory(path: str) -> dict[str, Any]:
    require_directory(path)
    fs = RealFs()
    places = [f"{path}/{name}" for name in ("wal", "segments", "snapshots")]
    files = [f"{place}/{name}" for place in places for name in fs.list(place)]
    return {
        "directory": path,
        "files": len(files),
        "disk_bytes": total_bytes(fs, path),
        "free_bytes": fs.free_bytes(path),
    }


def _grid(about: dict[str, Any]) -> Table:
    return fields_grid(
        (LABELS.get(name, name.removesuffix("_ms").replace("_", " ")), _shown(name, value))
        for name, value in about.items()
        if value is not None
    )


def _shown(name: str, value: Any) -> Text:
    if name.endswith("bytes"):
        return Text(sized(value))
    if name == "uptime_ms":
        return Text(_duration(value))
    if name.endswith("_ms"):
        return Text(f"{value:.1f} ms")
    if name == "routers_stalled" and value:
        return Text(f"{value:,}: `topics router ls` says what holds them up", style="bold red")
    if name == "read_only":
        return Text("yes: a disk failed, `topics doctor` says more", style="bold red") if value else Text("no")
    return Text(
        f"{value:,}" if isinstance(value, int) else printable(str(value)), style="bold" if name == "url" else ""
    )


def _duration(ms: int) -> str:
    seconds = ms // 1000
    days, seconds = divmod(seconds, 86_400)
    hours, seconds = divmod(seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    return f"{days} d {hours:02}:{minutes:02}:{seconds:02}" if days else f"{hours:02}:{minutes:02}:{seconds:02}"
