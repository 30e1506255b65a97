from __future__ import annotations

from pathlib import Path

import pytest

from topics.errors import InvalidRequest
from topics.spark.pipeline.locations import Locations


def may(locations: Locations, location: str) -> bool:
    try:
        locations.check(location, "path")
    except InvalidRequest:
        return False
    return True


def test_any_location_is_accepted_when_none_is_named() -> None:
    assert may(Locations(), "/anywhere") and may(Locations(), "s3://any/where")


@pytest.mark.parametrize("good", ["lake", "lake/", "lake/t", "lake/./t", "other/../lake/t"])
def test_location_below_a_named_one_is_accepted(tmp_path: Path, good: str) -> None:
    named = Locations((str(tmp_path / "lake"), "s3://bucket/lake/"))
    assert may(named, f"{tmp_path}/{good}") and may(named, f"file://{tmp_path}/{good}")
    assert may(named, f"s3://bucket/{good}")


@pytest.mark.parametrize("bad", ["", "lakes", "lake/..", "lake/../lakes", "lake/../../etc", "other"])
def test_location_outside_is_refused(tmp_path: Path, bad: str) -> None:
    named = Locations((str(tmp_path / "lake"), "s3://bucket/lake"))
    assert not may(named, f"{tmp_path}/{bad}") and not may(named, f"FILE://{tmp_path}/{bad}")
    assert not may(named, f"s3://bucket/{bad}") and not may(named, f"s3://bucket.evil/{bad}")
    assert not may(named, f"gs://bucket/lake/{bad}")


def test_password_of_a_refused_location_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as refused:
        Locations((str(tmp_path),)).check("postgresql://me:secret@host/db", "location")
    assert "secret" not in refused.value.message and "--location" in refused.value.message
