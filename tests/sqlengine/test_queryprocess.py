"""Real query processes: what they answer, what they may not do, and how they end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from topics import errors
from topics.sqlengine import queryprocess
from topics.sqlengine.channel import Buffer
from topics.sqlengine.querymessages import Open, Query, Table
from topics.sqlengine.queryprocess import ProcessEnded, QueryProcess, QueryRefused

MIB = 1 << 20
SCHEMA = pa.schema([("n", pa.int64()), ("text", pa.string())])

linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def query(text: str, number: int = 1, answer_bytes: int = 16 * MIB, tables: int = 0) -> Query:
    made = [Table(f"t{at}", bytes(SCHEMA.serialize()), None) for at in range(tables)]
    return Query(number, text, [], made, 1000, answer_bytes)


def no_scans(opening: Open) -> Generator[tuple[Buffer, bool], None, None]:
    raise AssertionError("no table was given")
    yield b"", True


def stream(numbers: range, names: list[str]) -> bytes:
    batch = pa.record_batch({"n": list(numbers), "text": [f"x{n}" for n in numbers]}, schema=SCHEMA).select(names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def rows(answer: bytearray) -> list[list[object]]:
    found: list[list[object]] = msgspec.json.decode(answer)["rows"]
    return found


@pytest.fixture(scope="module")
def shared() -> Iterator[QueryProcess]:
    """One process for tests that leave it usable."""
    process = QueryProcess(64 * MIB)
    yield process
    process.close()


def test_process_answers_one_query_after_the_other(shared: QueryProcess) -> None:
    for number in range(3):
        assert rows(shared.ask(query(f"SELECT {number}", number), no_scans)) == [[number]]
    with pytest.raises(QueryRefused) as refused:
        shared.ask(query("SELECT missing"), no_scans)
    assert (refused.value.failure.kind, refused.value.failure.position) == ("sql", 7)
    assert rows(shared.ask(query("SELECT 'all is well'"), no_scans)) == [["all is well"]]


def test_tables_are_sent_part_by_part_as_the_query_pulls(shared: QueryProcess) -> None:
    opened: list[Open] = []

    def scans(opening: Open) -> Generator[tuple[Buffer, bool], None, None]:
        opened.append(opening)
        for part in range(20):
            yield stream(range(part * 100, part * 100 + 100), opening.columns), part == 19

    joined = "SELECT count(*), sum(a.n) FROM t0 a JOIN t1 b ON a.n = b.n WHERE a.n >= 10 AND b.text <> 'x11'"
    assert rows(shared.ask(query(joined, tables=2), scans)) == [[1989, sum(range(10, 2000)) - 11]]
    assert sorted((each.table, tuple(each.columns)) for each in opened) == [(0, ("n",)), (1, ("n", "text"))]
    # The rest of the first table is on its way when the answer is complete.
    assert rows(shared.ask(query("SELECT n FROM t0 LIMIT 1", tables=1), scans)) == [[0]]
    assert rows(shared.ask(query("SELECT max(text) FROM t0", tables=1), scans)) == [["x999"]]


def test_scan_that_fails_ends_its_query_only(shared: QueryProcess) -> None:
    def broken(opening: Open) -> Generator[tuple[Buffer, bool], None, None]:
        yield stream(range(10), opening.columns), False
        raise OSError("the disk is gone")

    with pytest.raises(QueryRefused) as refused:
        shared.ask(query("SELECT sum(n) FROM t0", tables=1), broken)
    assert refused.value.failure.kind == "internal"
    assert rows(shared.ask(query("SELECT 1"), no_scans)) == [[1]]


@pytest.mark.parametrize("bound", [1000, 3 * MIB])
def test_answer_over_its_bytes_does_not_leave_the_process(shared: QueryProcess, bound: int) -> None:
    with pytest.raises(QueryRefused) as refused:
        shared.ask(query("SELECT repeat('x', 10000) FROM range(1000)", answer_bytes=bound), no_scans)
    assert refused.value.failure.kind == "answer"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT repeat('x', 1000000000)",
        "SELECT length(lpad('', 1000000000, 'x'))",
        "SELECT list(range) FROM range(100000000)",
        "SELECT max(length(x)) FROM (SELECT repeat('x', 10000000) || range AS x FROM range(1000))",
        "SELECT array_to_string(range(100000000), ',')",
    ],
)
def test_query_that_needs_too_much_memory_ends_alone(text: str) -> None:
    process = QueryProcess(64 * MIB)
    try:
        with pytest.raises((QueryRefused, ProcessEnded)) as ended:
            process.ask(query(text), no_scans)
        if isinstance(ended.value, QueryRefused):
            assert ended.value.failure.kind == "memory"
        else:
            assert ended.value.code < 0
        assert process.pid is not None
        if sys.platform == "linux" and process.usable:
            assert peak_bytes(process.pid) < 500 * MIB
    finally:
        process.close()


def peak_bytes(pid: int) -> int:
    (line,) = [each for each in Path(f"/proc/{pid}/status").read_text().splitlines() if each.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def test_process_that_kept_much_memory_is_not_used_again() -> None:
    process = QueryProcess(64 * MIB)
    try:
        with pytest.raises(QueryRefused):
            process.ask(
                query("SELECT string_agg(range::varchar || repeat('y', 50), '') FROM range(10000000)"), no_scans
            )
        assert not process.usable
    finally:
        process.close()


def test_stopped_query_ends_and_its_process_lives(shared: QueryProcess) -> None:
    def scans(opening: Open) -> Generator[tuple[Buffer, bool], None, None]:
        # The query has begun, since it pulls.
        yield stream(range(10), opening.columns), False
        shared.stop(98)
        shared.stop(99)
        yield stream(range(10), opening.columns), True

    endless = "SELECT count(*) FROM t0, range(1000000000000) a, range(1000000000000) b WHERE a.range % 7 = b.range % n"
    with pytest.raises(QueryRefused) as refused:
        shared.ask(query(endless, number=99, tables=1), scans)
    assert refused.value.failure.kind == "interrupted"
    assert rows(shared.ask(query("SELECT 1"), no_scans)) == [[1]]


def test_killed_process_ends_its_query() -> None:
    process = QueryProcess(64 * MIB)

    def scans(opening: Open) -> Generator[tuple[Buffer, bool], None, None]:
        process.kill()
        yield stream(range(10), opening.columns), True

    with pytest.raises(ProcessEnded) as ended:
        process.ask(query("SELECT sum(n) FROM t0", tables=1), scans)
    assert ended.value.code == -9 and not process.usable
    process.stop(1)
    process.close()
    process.stop(1)


def test_process_killed_before_its_start_never_starts() -> None:
    process = QueryProcess(64 * MIB)
    process.kill()
    with pytest.raises(ProcessEnded):
        process.start()
    process.close()
    assert process.pid is None


def test_process_that_cannot_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    process = QueryProcess(64 * MIB)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", "/nowhere/python")
        with pytest.raises(errors.Unavailable, match="cannot start a process for the query"):
            process.start()
    with pytest.raises(ProcessEnded):
        process.start()
    process.close()
    monkeypatch.setattr(queryprocess, "_BOOT", "raise SystemExit(3)")
    process = QueryProcess(64 * MIB)
    with pytest.raises(ProcessEnded) as ended:
        process.start()
    assert ended.value.code == 3
    process.close()


def test_process_that_sends_too_much_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    process = QueryProcess(64 * MIB)
    process.start()
    monkeypatch.setattr(queryprocess, "MESSAGE_BYTES_MAX", 10)
    with pytest.raises(ProcessEnded):
        process.ask(query("SELECT missing"), no_scans)
    assert not process.usable
    process.close()


@linux
def test_process_has_no_secrets_no_files_and_is_killed_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOPICS_API_KEYS", "a-secret")
    with (tmp_path / "open").open("w") as opened:
        os.set_inheritable(opened.fileno(), True)
        process = QueryProcess(64 * MIB)
        process.start()
    about = Path(f"/proc/{process.pid}")
    assert b"a-secret" not in (about / "environ").read_bytes() and b"a-secret" not in (about / "cmdline").read_bytes()
    targets = {os.readlink(each) for each in (about / "fd").iterdir()}
    assert not any("/open" in each for each in targets)
    assert sum(each.startswith("socket:") for each in targets) == 2
    limits = (about / "limits").read_text().splitlines()
    (files,) = [line.split()[3:5] for line in limits if line.startswith("Max open files")]
    (data,) = [line.split()[3:5] for line in limits if line.startswith("Max data size")]
    assert files == ["0", "0"] and data[0] == data[1] and int(data[1]) < 700 * MIB
    assert "/pandas/" not in (about / "maps").read_text(), "loading it would take longer than all the rest"
    assert (about / "oom_score_adj").read_text().strip() == "1000"
    assert os.readlink(about / "cwd") == "/"
    assert process.pid is not None and os.getsid(process.pid) != os.getsid(0)
    process.close()


_PARENT = """
from topics.sqlengine.queryprocess import QueryProcess
process = QueryProcess(64 << 20)
process.start()
print(process.pid, flush=True)
input()
"""


@linux
def test_process_ends_with_its_engine() -> None:
    engine = subprocess.Popen([sys.executable, "-c", _PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert engine.stdout is not None and engine.stdin is not None
    pid = int(engine.stdout.readline())
    watching = os.pidfd_open(pid)
    engine.kill()
    engine.wait()
    engine.stdout.close()
    engine.stdin.close()
    # Returns when the process has ended; the test hangs if it never does.
    import select

    assert select.select([watching], [], [], 60)[0]
    os.close(watching)
