"""`topics doctor`: measures what an installation stands on, and says what to change. `checkup.py` has the verdicts."""

from __future__ import annotations

from os import environ

from rich.console import Group
from rich.table import Table
from rich.text import Text

from topics.cli import checkup
from topics.cli.checkup import Finding, Verdict
from topics.cli.exitcode import Exit
from topics.cli.machine import machine
from topics.cli.screen import JsonFlag, Screen, printable
from topics.cli.serverhealth import server_health
from topics.cli.target import DEFAULT_TARGET, Target
from topics.client.connector import URL_VARIABLE

MARKS = {Verdict.OK: ("✓", "green"), Verdict.WARNING: ("!", "yellow"), Verdict.BAD: ("✗", "bold red")}


def doctor(*, json: JsonFlag = None, target: Target = DEFAULT_TARGET) -> int:
    """Check a directory and its machine, or a server, and say what to change.

    Without --url and --dir it is the directory and the port of the settings (TOPICS_DATA_DIR, TOPICS_PORT). A
    directory is written to for a moment, to measure how fast its disk syncs. Ends with 1 when there is a problem. For
    example:

        topics doctor --url http://127.0.0.1:4000
        topics doctor --dir ./data
    """
    screen = Screen(json)
    url = target.address if target.url or environ.get(URL_VARIABLE) else None
    findings = list(machine(target.dir) if url is None else server_health(url, target.api_key))
    if screen.as_json:
        for finding in findings:
            fields = {"check": finding.name, "verdict": finding.verdict.value, "found": finding.found}
            screen.show(fields | ({"advice": finding.advice} if finding.advice else {}), Text)
    else:
        screen.out.print(shown(findings))
    return Exit.FAILED if any(finding.verdict is Verdict.BAD for finding in findings) else Exit.OK


def shown(findings: list[Finding]) -> Group:
    """A line a check, advice below the ones that need it."""
    grid = Table.grid(padding=(0, 2))
    for _ in range(3):
        grid.add_column(overflow="fold")
    for finding in findings:
        mark, style = MARKS[finding.verdict]
        grid.add_row(Text(mark, style=style), Text(finding.name, style="bold"), Text(printable(finding.found)))
        if finding.advice:
            grid.add_row("", "", Text(f"→ {printable(finding.advice)}", style=style))
    worst = max((finding.verdict for finding in findings), key=list(Verdict).index)
    return Group(grid, Text(f"\n{checkup.summary(findings)}", style=MARKS[worst][1]))
