"""The screen captures of docs/CLI.md, taken here: a real terminal for `tail`, chosen measurements for `doctor`.

What differs from run to run (times, addresses) is replaced, so that a picture changes only when the command does. A
stale picture is written again and fails the test, once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType
from rich.text import Text

from tests.cli.rig import Command
from tests.cli.terminal import CTRL_C, Terminal
from tests.e2e.served import Served
from topics.cli import checkup
from topics.cli.doctor import shown
from topics.cli.pipelinepicture import add_pipeline, pipelines_table, whole
from topics.limits import GIB, MIB
from topics.pipelinemodel import (
    PipelineCondition,
    PipelineConfig,
    PipelineKind,
    PipelineReport,
    PipelineState,
    PipelineStream,
    RouteProgress,
    RunState,
)

IMAGES = Path(__file__).parents[2] / "docs" / "images"
COLUMNS = 100
NOW = "2026-06-02 17:06:40"
MOMENT_MS = 1_780_420_000_000

# Ours: a plain window, and the fonts of whoever looks at it, so that a picture loads nothing from anywhere.
FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<style>
.{unique_id}-matrix {{ font: {char_height}px/{line_height}px ui-monospace, Menlo, Consolas, monospace; }}
.{unique_id}-title {{ font: bold 16px sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def picture(name: str, parts: list[RenderableType]) -> str:
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, color_system="truecolor")
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, Text))
    text = console.export_svg(title=f"topics {name}", code_format=FORMAT, unique_id=name)
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE)


def check(name: str, image: str) -> None:
    path = IMAGES / f"{name}.svg"
    stale = not path.exists() or path.read_text() != image
    if stale:
        path.parent.mkdir(exist_ok=True)
        path.write_text(image)
    assert not stale, f"{path.name} was stale and has been written again: look at it, and keep it"


def typed(line: str) -> Text:
    return Text.assemble(("$ ", "bold green"), line)


def test_tail(server: Served, capfd: object) -> None:
    remote = Command(capfd, ["--url", server.url])
    remote("topic", "rm", "orders", "ticks", "--yes")
    remote.good("topic", "create", "ticks", "--cap-records", "2")
    remote.good("write", "ticks", "1", "2", "3", "4")
    for number, sku in ((1, "A1"), (2, "B2")):
        data = f'{{"sku": "{sku}", "cents": {number * 1250}, "paid": true}}'
        remote.good("write", "orders", data, "--tag", f"order-{number}", "--node", "shop-1")
    with Terminal("tail", "orders", "ticks", "-f", "--after", "0", columns=COLUMNS, TOPICS_URL=server.url) as terminal:
        for expected in ('"B2"', "gap: 1 to 2", "  4  4"):
            terminal.wait_for(expected)
        remote.good("write", "orders", '{"sku": "C3", "note": "while you watch"}', "--tag", "order-3")
        terminal.wait_for("while you watch")
        terminal.press(CTRL_C)
        assert terminal.end() == 130
    remote.good("topic", "rm", "orders", "ticks", "--yes")
    lines = [line for line in terminal.raw.decode().replace("\r\n", "\n").split("\n") if "Ctrl-C" not in line]
    captured = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}", f"{NOW}.123", "\n".join(lines)).rstrip()
    # Two topics are read side by side, so that their order on the screen is not always the same.
    by_topic = sorted(captured.splitlines(), key=lambda line: "ticks" in line)
    check("tail", picture("tail", [typed("topics tail orders ticks -f --after 0"), *map(Text.from_ansi, by_topic)]))


def test_doctor() -> None:
    findings = [
        checkup.good("versions", "topics 0.1.0, Python 3.12.3, msgspec 0.22.0, numpy 2.4.6, xxhash 4.1.0"),
        checkup.good("settings", "all can be used"),
        checkup.exposure("127.0.0.1", False),
        checkup.good("port", "127.0.0.1 port 4000 is free"),
        checkup.good("directory", "./data is there, and nobody has it open"),
        checkup.local_clock(1_780_420_000_000, None, NOW),
        checkup.file_system("ext4", "/"),
        checkup.disk_space(212 * GIB, 256 * MIB),
        checkup.sync_speed([3_900.0, 4_200.0, 14_900.0]),
        checkup.open_files(1024),
        checkup.memory(16 * GIB, 256 * MIB),
    ]
    check("doctor", picture("doctor", [typed("topics doctor"), shown(findings)]))


def test_pipelines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    route = RouteProgress(topic="app.new_messages", operation="insert", position="version 4711", records_total=182_044)
    said: dict[str, Any] = {"runner": "host-1/7f3a90c1", "state": RunState.RUNNING, "batch_ms": 412}
    said |= {"spark_ui": "host-1:4040"}
    routes = _pipeline(
        "routes:chat.messages",
        PipelineKind.ROUTES,
        PipelineReport(
            **said,
            position="version 4711",
            lag_versions=2,
            lag_ms=640,
            input_rows_per_second=1251.4,
            output_rows_per_second=2063.0,
            input_rows_total=1_204_118,
            output_rows_total=182_044,
            error_rows_total=3,
            batch_id=3902,
            restarts=1,
            last_error="PostgreSQL cannot be reached: the database system is starting up",
            last_error_ts=MOMENT_MS - 4_000_000,
            routes=(route,),
        ),
    )
    alerts = _pipeline(
        "low_credit",
        PipelineKind.INSERT,
        PipelineReport(**said, position="app.people/0@88211", lag_records=0, output_rows_per_second=12.0),
    )
    table = pipelines_table()
    for state in (alerts, routes):
        add_pipeline(table, state)
    parts: list[RenderableType] = [
        typed("topics pipeline ls"),
        table,
        typed("topics pipeline status routes:chat.messages"),
        whole(routes),
    ]
    check("pipelines", picture("pipelines", parts))


def _pipeline(name: str, kind: PipelineKind, report: PipelineReport) -> PipelineState:
    stream = PipelineStream(view="stream_1", topic="app.people")
    is_routes = kind is PipelineKind.ROUTES
    return PipelineState(
        pipeline=name,
        kind=kind,
        condition=PipelineCondition.RUNNING,
        created_ts=MOMENT_MS - 86_400_000,
        changed_ts=MOMENT_MS - 86_400_000,
        reported_ts=MOMENT_MS,
        number=1,
        digest="",
        table="chat.messages" if is_routes else None,
        config=None if is_routes else PipelineConfig(kind=kind, definition="", topic="app.alerts", streams=(stream,)),
        report=report,
    )


def test_a_picture_needs_nothing_from_elsewhere() -> None:
    for path in IMAGES.glob("*.svg"):
        addresses: Callable[[str], list[str]] = re.compile(r"https?://[^\"' )]+").findall
        assert set(addresses(path.read_text())) <= {"http://www.w3.org/2000/svg"}
