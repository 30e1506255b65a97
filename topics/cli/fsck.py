"""`topics fsck`: check a data directory, and repair a damaged one."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Annotated

import msgspec
from cyclopts import Parameter
from rich.console import Group
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from topics.cli.exitcode import Exit
from topics.cli.screen import JsonFlag, Screen
from topics.clock import SystemClock
from topics.engine.findings import Doubt, Finding, FsckReport
from topics.engine.fsck import fsck as check
from topics.engine.fsck import total_bytes
from topics.engine.opening import SALT_BITS, options
from topics.settings import load
from topics.storage.fs import RealFs

COLUMNS = (TextColumn("checking"), BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn())


def fsck(
    directory: Annotated[str | None, Parameter(help="The data directory; TOPICS_DATA_DIR when not named.")] = None,
    /,
    *,
    repair: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Save what is readable, and say what is lost. Damaged files are kept aside.",
        ),
    ] = False,
    json: JsonFlag = None,
) -> int:
    """Check every byte of a data directory that no process has open.

    Ends with 0 when all is well and 1 when something is damaged (or was, before a repair). Without --repair nothing
    is changed. For example:

        topics fsck ./elsewhere --repair
    """
    screen = Screen(json)
    settings = load()
    settings = replace(settings, data_dir=directory or settings.data_dir)
    chosen = options(settings)
    fs, clock = RealFs(memory_dir=settings.witness_dir), SystemClock()
    total = total_bytes(fs, settings.data_dir, chosen.cold_dir)
    with screen.progress(*COLUMNS) as progress:
        task = progress.add_task("checking", total=total)
        report = check(
            fs,
            settings.data_dir,
            clock,
            lambda: secrets.randbits(SALT_BITS),
            chosen,
            repair,
            lambda done: progress.advance(task, done),
        )
    if screen.as_json:
        screen.lines([msgspec.json.encode(report)])
    else:
        screen.out.print(_shown(report))
    return Exit.OK if report.clean else Exit.FAILED


def _shown(report: FsckReport) -> Group:
    parts: list[Table | Text] = []
    if report.findings:
        parts.append(_findings(report))
    if report.lost:
        parts.append(_lost(report))
    if report.may_be_back:
        parts.append(_may_be_back(report))
    parts += [Text(f"note: {note}", style="dim") for note in report.notes]
    parts.append(_summary(report))
    return Group(*parts)


def _findings(report: FsckReport) -> Table:
    table = Table(title=f"{len(report.findings)} findings", title_justify="left", header_style="bold")
    table.add_column("what")
    table.add_column("where", overflow="fold")
    table.add_column("offset", justify="right")
    table.add_column("topic", overflow="fold")
    table.add_column("seqs at risk")
    table.add_column("message", overflow="fold")
    table.add_column("a repair")
    for finding in report.findings:
        where = finding.file.removeprefix(report.directory).lstrip("/")
        message = finding.message.removeprefix(f"{finding.file} offset {finding.offset}: ")
        message = message.removeprefix(f"{finding.file} at offset {finding.offset}: ")
        table.add_row(
            finding.kind.value,
            Text(where),
            str(finding.offset),
            Text(finding.topic or ""),
            _seqs(finding),
            Text(message),
            Text(finding.todo),
        )
    return table


def _seqs(finding: Finding) -> str:
    if finding.first_seq is None and finding.last_seq is None:
        return ""
    first, last = finding.first_seq, finding.last_seq
    return f"{'?' if first is None else first}..{'?' if last is None else last}"


def _lost(report: FsckReport) -> Table:
    table = Table(title="lost" if report.repaired else "would be lost", title_justify="left", header_style="bold")
    table.add_column("topic", overflow="fold")
    table.add_column("partition", justify="right")
    table.add_column("seqs", justify="right")
    table.add_column("kept", justify="right")
    kept = {(each.topic, each.partition): each.records for each in report.kept}
    for lost in report.lost:
        table.add_row(
            Text(lost.topic),
            str(lost.partition),
            f"{lost.gap_from}..{lost.gap_to}",
            f"{kept.get((lost.topic, lost.partition), 0)} records",
            style="red",
        )
    return table


_DOUBTS = {
    Doubt.RECORDS: "records that were deleted, done or expired",
    Doubt.PROGRESS: "leases, deliveries, positions of groups and routers of an earlier moment",
    Doubt.ANSWERS: "writes that were answered, when they are repeated",
    Doubt.TOPIC: "the topic itself, its config, or routers into it",
}


def _may_be_back(report: FsckReport) -> Table:
    title = "may be back" if report.repaired else "may come back"
    table = Table(title=title, title_justify="left", header_style="bold")
    table.add_column("topic", overflow="fold")
    table.add_column("partition", justify="right")
    table.add_column("seqs", justify="right")
    table.add_column("what", overflow="fold")
    for each in report.may_be_back:
        seqs = f"{each.first_seq}..{each.last_seq}" if 0 < each.first_seq <= each.last_seq else ""
        table.add_row(Text(each.topic), str(each.partition), seqs, _DOUBTS[each.doubt], style="yellow")
    return table


def _summary(report: FsckReport) -> Text:
    records = sum(kept.records for kept in report.kept)
    read = f"{report.files} files, {report.bytes} bytes, {records} records; last stop: {report.last_stop}"
    if report.clean:
        return Text(f"clean: {read}", style="green")
    if report.repaired:
        aside = f"; damaged files are in {report.set_aside[0].rpartition('/')[0]}" if report.set_aside else ""
        return Text(f"repaired: {read}{aside}; the report is {report.report_file}", style="yellow")
    return Text(f"damaged: {read}; `topics fsck {report.directory} --repair` saves what is readable", style="red")
