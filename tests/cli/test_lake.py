"""The commands of a lake; `archive` with a real Spark is in `test_examples.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cli.rig import Command
from tests.cli.terminal import Terminal
from tests.e2e.served import Served
from tests.spark.lakes import filled, part_of, rows_of
from topics.spark.laketable import Lake
from topics.spark.server import Server

SECRET = "a-very-secret-word"


@pytest.fixture
def plain(capfd: pytest.CaptureFixture[str]) -> Command:
    return Command(capfd, [])


@pytest.fixture
def remote(capfd: pytest.CaptureFixture[str], server: Served) -> Command:
    return Command(capfd, ["--url", server.url])


def test_looking_after_a_lake(plain: Command, tmp_path: Path) -> None:
    root = filled(tmp_path, parts=6).root
    (found,) = plain.good("lake", "ls", root)
    (topic,) = found["topics"]
    assert (found["count"], topic["topic"], topic["first_date"]) == (60, "t", "2026-01-01")
    (told,) = plain.good("lake", "optimize", root)
    assert told["files_removed"] > told["files_added"]
    (trial,) = plain.good("lake", "vacuum", root, "--keep-days", 1, "--dry-run")
    assert (trial["rows_dropped"], trial["dry_run"]) == (60, True)
    plain.good("lake", "vacuum", root, "--keep-days", 1)
    assert rows_of(root) == []


def test_how_far_behind_the_server_a_lake_is(remote: Command, topic: str, tmp_path: Path) -> None:
    for number in range(3):
        remote.good("write", topic, number)
    root = filled(tmp_path, topic=topic).root
    (found,) = remote.good("lake", "status", root)
    assert [(each["topic"], each["behind"]) for each in found["topics"]] == [(topic, None)]


def test_an_archive_is_shown_and_forgotten(remote: Command, server: Served, topic: str) -> None:
    remote.good("write", topic, 1)
    caller = Server(server.url, "", 10_000)
    caller.archived(topic, "lake", 1, "/lake", 0, caller.state(topic).epoch)
    caller.close()
    (shown,) = remote.good("topic", "show", topic)
    (archive,) = shown["partitions"][0]["archives"]
    assert (archive["archive"], archive["upto_seq"], archive["location"]) == ("lake", 1, "/lake")
    with Terminal("topic", "show", topic, "--url", server.url) as terminal:
        assert terminal.end() == 0
        assert "has up to" in terminal.shown and "/lake" in terminal.shown
    assert remote.good("lake", "forget", topic) == [{"topic": topic, "archive": "lake", "dropped": True}]
    assert remote.good("lake", "forget", topic) == [{"topic": topic, "archive": "lake", "dropped": False}]


def test_erasing_reaches_the_server_and_the_lake(remote: Command, topic: str, tmp_path: Path) -> None:
    for tag in ("user:7", "other"):
        remote.good("write", topic, f'"{SECRET}"', "--tag", tag)
    lake = filled(tmp_path, topic=topic)
    lake.commit("q", 3, [part_of(lake, 31, 32, topic, tag="user:7", data=SECRET)])
    (receipt,) = remote.good("lake", "erase", lake.root, topic, "--tag", "user:7")
    assert (receipt["erased_count"], receipt["erased_from_server"], receipt["complete"]) == (2, 1, True)
    assert [record["$tag"] for record in remote.good("read", topic)] == ["other"]
    assert len(rows_of(lake.root)) == 30
    (again,) = remote.good("lake", "erase", lake.root, topic, "--tag", "user:*", "--lake-only")
    assert (again["erased_count"], again["erased_from_server"]) == (0, None)


def test_an_erasure_that_is_not_complete_ends_with_1(plain: Command, tmp_path: Path) -> None:
    lake = filled(tmp_path)
    part_of(lake, 31, 31, tag="x")
    said = plain("lake", "erase", lake.root, "t", "--tag", "x", "--lake-only")
    assert said.code == 1 and '"complete":false' in said.out


def test_what_is_refused(plain: Command, tmp_path: Path) -> None:
    assert plain("lake", "ls", tmp_path / "nowhere").code == 3
    said = plain("lake", "vacuum", filled(tmp_path).root, "--older-than", "10min")
    assert said.code == 2 and "about to be committed" in said.err
    said = plain("lake", "archive", tmp_path / "lake", "--dir", tmp_path)
    assert said.code == 2 and "topics serve" in said.err
    said = plain("redrive", "t")
    assert said.code == 2 and "say --spark" in said.err
    assert not Path(tmp_path, "data").exists()
    assert Lake.open(str(tmp_path / "lake")).version == 3


def test_for_a_person(tmp_path: Path) -> None:
    with Terminal("lake", "ls", filled(tmp_path).root) as terminal:
        assert terminal.end() == 0
        assert "records" in terminal.shown and "2026-01-04" in terminal.shown


def test_what_would_be_a_slip_of_the_pen_changes_nothing(plain: Command, tmp_path: Path) -> None:
    lake = filled(tmp_path)
    for size in ("huge", "0"):
        said = plain("lake", "optimize", lake.root, "--target-size", size)
        assert said.code == 2 and f"--target-size={size}: expected a size like 256MiB" in said.err
    said = plain("lake", "vacuum", lake.root, "--keep-days", "-1")
    assert said.code == 2 and "keep_days must be 0, which keeps all, or more, not -1" in said.err
    assert Lake.open(lake.root).version == lake.version and len(rows_of(lake.root)) == 30


def test_how_far_behind_for_a_person(remote: Command, server: Served, topic: str, tmp_path: Path) -> None:
    for number in range(3):
        remote.good("write", topic, number)
    caller = Server(server.url, "", 10_000)
    caller.archived(topic, "lake", 1, "/lake", 0, caller.state(topic).epoch)
    caller.close()
    root = filled(tmp_path, topic=topic).root
    shown = remote("lake", "status", root, "--no-json").out.splitlines()
    assert shown[0].split()[-1] == "behind" and shown[1].split()[0] == topic and shown[1].split()[-1] == "2"


# ---- archiving, with something that stands in for Spark: the real one takes long to start


class Query:
    """What Spark would call a streaming query; `then` is what becomes of it."""

    def __init__(self, then: type[BaseException] | Exception | None = None) -> None:
        self._then = then
        self.looks = 0
        self.stopped = False
        self.lastProgress: object = None

    def awaitTermination(self, timeout_s: float) -> bool:
        self.looks += 1
        if self.looks > 1:
            self.lastProgress = SimpleNamespace(batchId=4, processedRowsPerSecond=12.0)
        if self.looks < 3:
            return False
        if self._then is not None:
            raise self._then
        return True

    def stop(self) -> None:
        self.stopped = True


@pytest.fixture
def sparkless(monkeypatch: pytest.MonkeyPatch) -> Callable[[Query], Query]:
    pytest.importorskip("pyspark")

    @contextmanager
    def session(master: str, config: dict[str, str]) -> Iterator[object]:
        yield object()

    def begin(query: Query) -> Query:
        monkeypatch.setattr("topics.spark.launch.session", session)
        monkeypatch.setattr("topics.spark.archive.archive", lambda *arguments, **more: query)
        return query

    return begin


def test_an_archive_ends_with_what_the_lake_holds(
    remote: Command, sparkless: Callable[[Query], Query], tmp_path: Path
) -> None:
    lake, query = filled(tmp_path), sparkless(Query())
    said = remote("lake", "archive", lake.root, "--available-now", "--no-json")
    assert (said.code, said.out.strip()) == (0, f"{lake.root} holds 30 records of 1 topic")
    assert query.looks == 3 and not query.stopped


def test_ctrl_c_stops_the_query(remote: Command, sparkless: Callable[[Query], Query], tmp_path: Path) -> None:
    query = sparkless(Query(KeyboardInterrupt))
    said = remote("lake", "archive", filled(tmp_path).root)
    assert (said.code, said.out) == (130, "") and query.stopped


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("[STREAM_FAILED] it ended\nCaused by:\ntopics.errors.Forbidden: no key for t\n\tat x", "no key for t"),
        ("\n[STREAM_FAILED] it ended\n\tat org.apache.spark", "[STREAM_FAILED] it ended"),
    ],
)
def test_a_query_that_fails_says_why_in_a_line(
    remote: Command, sparkless: Callable[[Query], Query], tmp_path: Path, told: str, words: str
) -> None:
    from pyspark.errors import StreamingQueryException

    sparkless(Query(StreamingQueryException(told)))
    said = remote("lake", "archive", filled(tmp_path).root)
    assert (said.code, said.out, said.err) == (1, "", f"topics: internal: {words}\n")
