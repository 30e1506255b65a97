"""An engine from settings: on the real disk, under the real clock, with real chance.

Everything that touches the world is chosen here and handed down. The server and `topics.open` both begin here, and
neither needs the other.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

from topics.clock import SystemClock
from topics.core.machine import Bounds
from topics.core.records import RecordLimits
from topics.engine.engine import Engine, EngineLimits
from topics.engine.job import SegmentLimits
from topics.engine.recovery import Options, Progress, recover
from topics.settings import Settings
from topics.storage.committer import Post
from topics.storage.fs import RealFs
from topics.storage.wal import WalSettings

SALT_BITS = 64


def options(settings: Settings) -> Options:
    """What the engine takes of the settings."""
    return Options(
        bounds=Bounds(
            topics_max=settings.max_topics,
            routers_max=settings.max_routers,
            total_bytes_max=settings.max_total_bytes,
            stage_ttl_ms=settings.stage_ttl_ms,
            staged_bytes_max=settings.max_staged_bytes,
            claim_max=settings.max_claim,
            heap_in_flight_max=settings.heap_max_in_flight,
            heap_leases_max=settings.heap_max_leases,
            group_visibility_ms=settings.group_visibility_ms,
            node_bytes_max=settings.max_node_bytes,
        ),
        limits=EngineLimits(
            limit_max=settings.max_limit,
            buffer_grace_ms=settings.buffer_grace_ms,
            checkpoint_ms=settings.checkpoint_ms,
            dirty_bytes_max=max(settings.hot_bytes // 4, settings.wal_file_bytes // 4),
            backup_held_bytes_max=settings.backup_held_bytes,
        ),
        segments=SegmentLimits(
            bytes_max=settings.segment_bytes,
            records_max=settings.segment_records,
            cold_after_ms=settings.cold_after_ms,
        ),
        wal=WalSettings(
            shards=settings.wal_shards, file_bytes=settings.wal_file_bytes, disk_sync_ms=settings.disk_sync_ms
        ),
        hot_bytes=settings.hot_bytes,
        cold_dir=settings.cold_dir,
    )


def record_limits(settings: Settings) -> RecordLimits:
    """How large a write and its records may be."""
    return RecordLimits(
        batch_records=settings.max_batch_records,
        record_bytes=settings.max_record_bytes,
        meta_bytes=settings.max_meta_bytes,
        tag_bytes=settings.max_tag_bytes,
        node_bytes=settings.max_node_bytes,
    )


def opener(settings: Settings, on_progress: Progress = lambda done: None) -> Callable[[Post], Engine]:
    """Opens the engine on the real disk under the real clock; says on its thread how far the recovery is."""
    clock = SystemClock()

    def open_engine(post: Post) -> Engine:
        return recover(
            RealFs(clock, settings.witness_dir),
            settings.data_dir,
            clock,
            lambda: secrets.randbits(SALT_BITS),
            options(settings),
            post,
            on_progress,
        )

    return open_engine
