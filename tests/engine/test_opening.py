from __future__ import annotations

from topics.engine.opening import options
from topics.engine.recovery import Options
from topics.settings import Settings


def test_every_setting_of_the_engine_reaches_it() -> None:
    """Each value is another than its default, so that one that is not passed on shows."""
    passed = options(
        Settings(
            wal_shards=3,
            wal_file_bytes=8192,
            disk_sync_ms=7,
            checkpoint_ms=11,
            segment_bytes=4096,
            segment_records=13,
            hot_bytes=17,
            cold_dir="cold",
            cold_after_ms=19,
            max_limit=23,
            max_topics=29,
            max_total_bytes=31,
            stage_ttl_ms=37,
            max_staged_bytes=41,
        )
    )
    assert (passed.wal.shards, passed.wal.file_bytes, passed.wal.disk_sync_ms) == (3, 8192, 7)
    assert (passed.segments.bytes_max, passed.segments.records_max, passed.segments.cold_after_ms) == (4096, 13, 19)
    assert (passed.limits.checkpoint_ms, passed.limits.limit_max) == (11, 23)
    assert (passed.bounds.topics_max, passed.bounds.total_bytes_max) == (29, 31)
    assert (passed.bounds.stage_ttl_ms, passed.bounds.staged_bytes_max) == (37, 41)
    assert (passed.hot_bytes, passed.cold_dir) == (17, "cold")


def test_the_defaults_of_engine_and_settings_agree() -> None:
    assert options(Settings()) == Options()
