from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.rig import Command


def test_a_small_load(topics: Command) -> None:
    (said,) = topics.good("bench", "--duration", "200ms", "--writers", "3", "--batch", "4", "--record-bytes", "50")
    assert said["records"] == 4 * said["writes"] == said["read_records"] > 0
    assert said["records_per_s"] > 0 and said["read_records_per_s"] > 0
    assert 0 < said["latency_us"]["p50"] <= said["latency_us"]["p99"] <= said["latency_us"]["max"]
    listed = [each["topic"] for each in topics.good("topic", "ls", "bench-")]
    assert listed == [], "its topic is gone"


def test_for_a_person(topics: Command) -> None:
    shown = topics("bench", "--duration", "100ms", "--no-json").out
    assert "records/s" in shown and "p99" in shown and "█" in shown and "read back" in shown


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--duration", "soon"), "--duration=soon: expected a duration"),
        (("--duration", "0"), "--duration=0: expected a duration"),
        (("--writers", "0"), "--writers must be 1 to 1024, not 0"),
        (("--batch", "100000"), "--batch must be 1 to 10000"),
        (("--record-bytes", "0"), "--record-bytes must be 1 to"),
        (("--durability", "rock"), "rock"),
    ],
)
def test_what_cannot_be_meant_is_refused(topics: Command, arguments: tuple[str, ...], what: str) -> None:
    said = topics("bench", *arguments)
    assert (said.code, said.out) == (2, "") and what in said.err


def test_a_write_that_is_refused_ends_it_with_what_was_wrong(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOPICS_MAX_RECORD_BYTES", "100")
    topics = Command(capfd, ["--dir", str(tmp_path / "data")])
    said = topics("bench", "--writers", "3", "--record-bytes", "101", "--duration", "1h")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("topics: record_too_large: ") and said.err.count("\n") == 1
    assert topics.good("topic", "ls", "bench-") == [], "its topic is gone"
