"""The sections of the page: which result each shows, what that means, and how much of it is the goal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from proof.faults.catalogue import FAULTS_MIN
from proof.results import Result
from proof.soak.part import LOAD_MINUTES, SIMULATED_SEEDS

KILL_CYCLES = 200
JEPSEN_RUNS = 10
FUZZ_INPUTS = 10_000_000
COVERED_PERCENT = 95


@dataclass(frozen=True, slots=True)
class Section:
    name: str
    """Of the result, and of its file."""
    title: str
    about: str
    command: str
    """What runs it, for who wants to see for themselves."""
    goals: Mapping[str, int] = field(default_factory=dict)
    """The least that a full run has of a number; `table.number` is one of each row of a table."""


SECTIONS = (
    Section(
        "simulator",
        "The simulator",
        "One seed drives clock, disk, network, scheduler and clients over the real engine, all features at once. "
        "Clients write, read, watch, lease and consume over HTTP, event streams, WebSockets, SQL statements and Arrow "
        "bodies, in topics of every durability class, with caps and TTLs, erased, dropped and made again. "
        "Checkers that know nothing of the engine read what the clients saw. A seed that fails is replayed exactly by "
        "`.venv/bin/python -m topics.testing.sim --seed N`. Two things cannot run inside: gRPC, whose library has "
        "sockets and threads of its own, and SELECT, whose engine has threads. The verbs behind gRPC are simulated "
        "over `/v1`, and its own server is killed under load in `tests/e2e/test_kill.py`; SELECT only reads, and is "
        "held against Spark in `tests/spark/e2e/test_sql_equality.py`.",
        "make soak ONLY=simulator",
        {"seeds": SIMULATED_SEEDS},
    ),
    Section(
        "faults",
        "The catalogue of faults",
        "Every fault in [FAULTS](FAULTS.md) names the tests that show what happens; a row without one fails "
        "`make test`.",
        ".venv/bin/python -m proof faults",
        {"faults": FAULTS_MIN},
    ),
    Section(
        "mutants",
        "Mutants",
        "Each breaks one promise in a copy of the code. A test has to fail; a survivor is a missing test.",
        "make mutants",
    ),
    Section(
        "fuzz",
        "Fuzzing",
        "Every decoder gets inputs that are made from what reached new lines before. It answers with a value or with "
        "an error of its own, never with anything else. `inputs` are those that were made and run; of these, the lines "
        "that `traced` ones took were looked at: one in so many, and each that was answered in a way of its own. They "
        "add up over the versions of a decoder; `date` and `code`, a hash of its modules, are of the last search, and "
        "one that was changed since gets another.",
        "make soak ONLY=fuzz",
        {"decoders.inputs": FUZZ_INPUTS},
    ),
    Section(
        "kill",
        "A process that is killed",
        "A real process under writes, deletes, jobs, messages by priority, a group, a router and batches, in process "
        "and over HTTP, and under heaps over gRPC (calls and Work streams), a WebSocket and a group in SQL, is killed "
        "with SIGKILL again and again. After each time, what it had acked is there, once, and right. A run that is "
        "broken off goes on where it was.",
        "make soak ONLY=kill",
        {"cycles": KILL_CYCLES},
    ),
    Section(
        "jepsen",
        "A machine that loses power",
        "`topics serve` runs on a file system in user space that knows what was synced, with a clock that can be set. "
        "Clients that share no code with the server use it over HTTP and gRPC. One fault follows the other: SIGKILL, a "
        "power loss that drops or tears what was not synced (without a reboot), a disk that is detached, SIGTERM, a "
        "clock that jumps by up to three days and back, a full disk, one slow shard of the log. The checkers of the "
        "simulator read the histories. On a disk that answers syncs and does nothing, the same run has to fail.",
        "make soak ONLY=jepsen",
        {"runs": JEPSEN_RUNS},
    ),
    Section(
        "disk",
        "A disk that fills up",
        "A server on a small disk that is really mounted: it says that the disk is full, loses nothing that it acked, "
        "and goes on when there is room. How many writes each disk took:",
        "make soak ONLY=disk",
    ),
    Section(
        "load",
        "Half load for half an hour",
        "Rounds of all kinds of work, over HTTP, gRPC, a WebSocket and in SQL, at half the rate that the server "
        "reached before, with a follower. Medians of the "
        "time after a first third for warming up, and of the last third: neither memory nor files nor threads nor "
        "tasks grow.",
        "make soak ONLY=load",
        {"minutes": LOAD_MINUTES},
    ),
    Section(
        "security",
        "Security",
        "Who may do what, over every route and call; secrets; requests that mean harm. See [SECURITY](SECURITY.md).",
        ".venv/bin/python -m proof security",
    ),
    Section(
        "coverage",
        "Coverage",
        "Lines and branches that the tests reach, in each room. [What they do not](proof/gaps.md), and why.",
        "make coverage",
        {"rooms.percent": COVERED_PERCENT},
    ),
    Section(
        "soak",
        "The long runs",
        "What `make soak` ran last, part by part.",
        "make soak",
    ),
)


def shortfalls(section: Section, result: Result) -> list[str]:
    """What a run had less of than is the goal, in words."""
    found = []
    for goal, least in section.goals.items():
        table, _, number = goal.rpartition(".")
        rows: Mapping[str, Result] = result.get(table, {}) if table else {"": result}
        short = [row.get(number, 0) for row in rows.values() if row.get(number, 0) < least]
        if table and short:
            found.append(f"{len(short)} of {len(rows)} {table} have had fewer than {least:,} {number}")
        elif short:
            found.append(f"{short[0]:,} of {least:,} {number}")
    return found
