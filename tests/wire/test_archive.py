from __future__ import annotations

import pytest

from topics.core.commands import ReportArchive
from topics.errors import InvalidRequest
from topics.model import ArchiveState
from topics.wire.archive import archive_fields, decode_report


def test_what_a_report_names() -> None:
    assert decode_report("t", "lake", b'{"upto_seq":0}') == ReportArchive("t", "lake", 0)
    body = b'{"upto_seq":7,"location":"/lake","partition":2,"epoch":3}'
    assert decode_report("t", "lake", body) == ReportArchive("t", "lake", 7, "/lake", 2, 3)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", "upto_seq"),
        (b'{"location":"x"}', "upto_seq"),
        (b'{"upto_seq":-1}', "upto_seq"),
        (b'{"upto_seq":1,"partition":-1}', "partition"),
        (b'{"upto_seq":1,"epoch":-1}', "epoch"),
        (b'{"upto_seq":"1"}', "upto_seq"),
    ],
)
def test_what_is_refused(body: bytes, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        decode_report("t", "lake", body)
    assert caught.value.detail["field"] == field


def test_the_partition_is_told_where_there_are_several() -> None:
    state = ArchiveState(archive="lake", partition=1, upto_seq=5, behind=2, location="/l", reported_ts=9)
    shown = {"archive": "lake", "upto_seq": 5, "behind": 2, "location": "/l", "reported_ts": 9}
    assert archive_fields(state, 1) == shown
    assert archive_fields(state, 2) == shown | {"partition": 1}
