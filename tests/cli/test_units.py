"""The small parts of the command line."""

from __future__ import annotations

import json
from dataclasses import fields
from decimal import Decimal

import pytest

from topics.cli.configflags import ConfigFlags
from topics.cli.durations import milliseconds
from topics.cli.latencies import Latencies
from topics.cli.lines import Origin, gap_line, parse_record, record_line
from topics.cli.pretty import moment
from topics.cli.screen import counted, printable, sized
from topics.cli.source import BATCH_LINES_MAX, _Cutter
from topics.client.fields import CONFIG_NAMES
from topics.errors import InvalidRequest
from topics.model import Gap, Reason, Record


def test_every_config_field_has_a_flag() -> None:
    assert {field.name for field in fields(ConfigFlags)} == CONFIG_NAMES - {"durable"}, (
        "durable is short for durability"
    )


def test_sizes_counts_and_times_for_people() -> None:
    assert [sized(size) for size in (0, 1023, 1024, 1536, 5 << 30, 3 << 40)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "1.5 KiB",
        "5.0 GiB",
        "3.0 TiB",
    ]
    assert (counted(1, "record"), counted(2000, "record")) == ("1 record", "2,000 records")
    assert (moment(None), moment(10**18)) == ("never", f"{10**18} ms")


@pytest.mark.parametrize(
    ("text", "shown"), [("plain ü €", "plain ü €"), ("a\x1b[2J", "a\\x1b[2J"), ("\x9b\n\u202e", "\\x9b\\n\\u202e")]
)
def test_control_characters_are_spelled_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_numbers_of_any_size_go_out_as_they_came_in() -> None:
    record = Record(1, 2, [2**70, Decimal("1e400"), 1.5], tag="t", node="n", meta={"a": "b"})
    line = record_line(record, Origin("orders", 3))
    assert line == (
        b'{"topic":"orders","partition":3,"$seq":1,"$ts":2,"$node":"n","$tag":"t","meta":{"a":"b"},'
        b'"data":[1180591620717411303424,1E+400,1.5]}'
    )
    again = parse_record(line)
    assert not isinstance(again, Gap) and (again["tag"], again["node"], again["meta"]) == ("t", "n", {"a": "b"})
    gap = Gap(1, 3, Reason.TTL)
    assert parse_record(gap_line(gap, Origin())) == gap


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_lines_are_the_same_however_they_arrive(step: int) -> None:
    text = b"1\n\n  \n22\r\n" + b"x" * 50 + b"\n" + b"3\n" * (BATCH_LINES_MAX + 1) + b"last"
    cutter = _Cutter("stdin")
    batches = [batch for at in range(0, len(text), step) for batch in cutter.cut(text[at : at + step])]
    batches += cutter.end()
    found = [line for batch in batches for line in batch.lines]
    expected = [(number, line) for number, line in enumerate(text.split(b"\n"), 1) if line.strip()]
    assert found == expected
    assert max(len(batch.lines) for batch in batches) <= BATCH_LINES_MAX
    assert batches[-1].read_bytes == len(text)


def test_percentiles_are_near_and_the_longest_exact() -> None:
    latencies = Latencies()
    for us in range(1, 10_001):
        latencies.add(us)
    assert latencies.longest_us == latencies.percentile_us(1) == 10_000
    for share in (0.5, 0.9, 0.99):
        assert share * 10_000 <= latencies.percentile_us(share) <= share * 10_000 * 1.15
    rows = latencies.by_power()
    assert sum(count for _, count in rows) == 10_000
    assert rows[0] == (2, 1) and rows[-1][0] == 16_384
    assert Latencies().percentile_us(0.5) == 0 and Latencies().by_power() == []


def test_json_stays_json() -> None:
    assert json.loads(record_line(Record(1, 2, None), Origin())) == {"$seq": 1, "$ts": 2, "data": None}


@pytest.mark.parametrize(("given", "ms"), [("500ms", 500), ("10s", 10_000), ("1.5 h", 5_400_000), ("0", 0)])
def test_a_duration_has_a_unit(given: str, ms: int) -> None:
    assert milliseconds("retry", given) == ms


@pytest.mark.parametrize("given", ["5", "0005", " 5", "5_000", "2.5", "soon", "", "-1s"])
def test_a_duration_without_a_unit_is_refused(given: str) -> None:
    with pytest.raises(InvalidRequest, match="expected a duration with a unit, like 500ms, 10s or 1h"):
        milliseconds("retry", given)
