from __future__ import annotations

import threading
from pathlib import Path

from tests.engine.test_host import LONG_S, opener, run
from topics.engine.engine import Engine
from topics.engine.host import Host
from topics.engine.opening import options
from topics.engine.recovery import Options
from topics.settings import Settings
from topics.storage.committer import Post


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


# ---- reports around the opening of a host


def test_a_report_of_a_recovery_is_run_by_the_loop_that_waits_for_it(tmp_path: Path) -> None:
    ran: list[int] = []
    told = threading.Event()

    def open_engine(post: Post) -> Engine:
        def report() -> None:
            ran.append(threading.get_ident())
            told.set()

        post(report)
        assert told.wait(LONG_S)
        return opener(tmp_path)(post)

    async def test() -> None:
        host = await Host.open(open_engine)
        assert ran == [threading.get_ident()]
        await host.close()

    run(test)


def test_a_report_that_comes_when_the_loop_is_gone_has_nobody_to_go_to(tmp_path: Path) -> None:
    posts: list[Post] = []
    ran: list[int] = []

    def open_engine(post: Post) -> Engine:
        posts.append(post)
        return opener(tmp_path)(post)

    async def test() -> None:
        await (await Host.open(open_engine)).close()

    run(test)
    posts[0](lambda: ran.append(1))
    assert ran == []
