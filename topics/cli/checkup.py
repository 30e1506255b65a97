"""What `topics doctor` thinks of what it measured: pure, so that every verdict can be tried.

A `Finding` is one thing that was looked at: how it is, whether that is good, and if not, what to change and how.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address

from topics.cli.screen import counted, sized
from topics.limits import DAY_MS, GIB

SYNC_FAST_US = 2_000
SYNC_SLOW_US = 20_000
SYNC_INCREDIBLE_US = 15
"""No disk makes bytes durable in less."""
SPACE_LOW_BYTES = 2 * GIB
NOFILE_MIN = 1024
NOFILE_GOOD = 8192
EARLIEST_NOW_MS = 1_735_689_600_000
"""The first of January 2025: before it, this program did not exist."""
SKEW_MS = 2_000
CERTIFICATE_DAYS_MIN = 14
LAG_MS = 100
LATENCY_MS = 100
FLEETING = frozenset({"tmpfs", "ramfs", "devtmpfs"})
DISTANT = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "fuse.s3fs", "ceph", "glusterfs"})


class Verdict(StrEnum):
    OK = "ok"
    WARNING = "warning"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Finding:
    name: str
    verdict: Verdict
    found: str
    advice: str = ""


def good(name: str, found: str) -> Finding:
    return Finding(name, Verdict.OK, found)


def warning(name: str, found: str, advice: str) -> Finding:
    return Finding(name, Verdict.WARNING, found, advice)


def bad(name: str, found: str, advice: str) -> Finding:
    return Finding(name, Verdict.BAD, found, advice)


# ---- a directory and its machine


def sync_speed(times_us: Sequence[float]) -> Finding:
    """How long a small write takes to be durable."""
    ordered = sorted(times_us)
    median, worst = ordered[len(ordered) // 2], ordered[-1]
    found = f"{_time(median)} to make 4 KiB durable, {_time(worst)} at worst of {len(ordered)}"
    if median < SYNC_INCREDIBLE_US:
        advice = (
            "no disk is that fast: it keeps nothing in a power loss; use a real disk, or a controller with a battery"
        )
        return warning("disk sync", found, advice)
    if median <= SYNC_FAST_US:
        return good("disk sync", found)
    advice = (
        "acks of fsync topics wait for it: use an SSD with power-loss protection, or durability disk where it will do"
    )
    return (bad if median > SYNC_SLOW_US else warning)("disk sync", found, advice)


def file_system(kind: str, mounted_at: str) -> Finding:
    found = f"{kind} on {mounted_at}"
    if kind in FLEETING:
        return bad(
            "file system", found, "it is memory: everything is gone with the machine; set TOPICS_DATA_DIR to a disk"
        )
    if kind in DISTANT:
        return warning(
            "file system", found, "locks and syncs over a network are not always what they say; use a local disk"
        )
    if kind == "overlay":
        return warning(
            "file system", found, "a container's own layer goes with the container; mount a volume for the data"
        )
    return good("file system", found)


def witness(kind: str, directory: str) -> Finding:
    """Where the note is kept which proves after a kill that the disk lost nothing."""
    if kind in FLEETING:
        return good("kill proof", f"{directory} is in memory")
    found = f"{directory} is not in memory" if kind else f"{directory} is missing"
    advice = "topics of class disk skip seqs after each kill: set TOPICS_WITNESS_DIR to a directory on a tmpfs"
    return warning("kill proof", found, advice)


def disk_space(free_bytes: int, wal_bytes: int) -> Finding:
    """`wal_bytes` is what the write-ahead log alone takes."""
    found = f"{sized(free_bytes)} free"
    if free_bytes < 2 * wal_bytes:
        advice = f"the write-ahead log alone takes {sized(wal_bytes)}: make room, or lower TOPICS_WAL_FILE_BYTES"
        return bad("disk space", found, advice)
    if free_bytes < SPACE_LOW_BYTES:
        return warning("disk space", found, "make room, or cap topics: `topics topic config NAME --cap-bytes 1GiB`")
    return good("disk space", found)


def open_files(limit_count: int) -> Finding:
    found = f"{limit_count:,} open files allowed"
    if limit_count >= NOFILE_GOOD:
        return good("open files", found)
    advice = "each connection takes one: `ulimit -n 65536` before the start, or LimitNOFILE=65536 in a systemd unit"
    return (bad if limit_count < NOFILE_MIN else warning)("open files", found, advice)


def memory(total_bytes: int, hot_bytes: int) -> Finding:
    found = f"{sized(total_bytes)}, of which reads may use {sized(hot_bytes)}"
    if hot_bytes > total_bytes // 2:
        return warning("memory", found, f"lower TOPICS_HOT_BYTES to at most {sized(total_bytes // 2)}")
    return good("memory", found)


def local_clock(now_ms: int, written_ms: int | None, shown: str) -> Finding:
    """`written_ms`: when the newest file of the directory says it was made."""
    if now_ms < EARLIEST_NOW_MS:
        return bad(
            "clock",
            shown,
            "it is years behind: TTLs will not work; set it, for example with `timedatectl set-ntp true`",
        )
    if written_ms is not None and now_ms + SKEW_MS < written_ms:
        behind = f"{shown}, {(written_ms - now_ms) / 1000:.0f} s before the newest file was written"
        advice = "the server's time runs slower until the clock has caught up; set it and keep it synchronised"
        return warning("clock", behind, advice)
    return good("clock", shown)


def exposure(host: str, has_keys: bool) -> Finding:
    found = f"binds {host}, {'with' if has_keys else 'without'} keys"
    if has_keys or is_loopback(host):
        return good("access", found)
    return bad("access", found, "others can reach it: set TOPICS_API_KEYS, or TOPICS_HOST=127.0.0.1")


def certificate(now_ms: int, ends_ms: int, path: str) -> Finding:
    """Of gRPC: how long clients will believe it."""
    days = (ends_ms - now_ms) // DAY_MS
    advice = "renew it; the server reads it when it starts"
    if ends_ms <= now_ms:
        return bad("gRPC TLS", f"{path} has expired: no client will believe it", advice)
    found = f"{path} is good for {counted(days, 'day')}"
    return warning("gRPC TLS", found, advice) if days < CERTIFICATE_DAYS_MIN else good("gRPC TLS", found)


# ---- a server


def latency(elapsed_ms: float) -> Finding:
    found = f"answers in {elapsed_ms:.1f} ms"
    if elapsed_ms > LATENCY_MS:
        return warning(
            "reachable", found, "far away or busy: batch writes (`topics write --file`), or look at its load"
        )
    return good("reachable", found)


def skew(here_ms: int, there_ms: int) -> Finding:
    # The header has whole seconds.
    off_ms = max(0, abs(here_ms - there_ms) - 1000)
    if off_ms > SKEW_MS:
        found = f"{off_ms / 1000:.0f} s between this machine and the server"
        return warning("clock", found, "synchronise both clocks: timestamps of records are the server's")
    return good("clock", "the same here and there")


def server_version(here: str, there: object) -> Finding:
    if there != here:
        return warning(
            "version", f"{there} there, {here} here", "upgrade the older one; see CHANGELOG.md for what changed"
        )
    return good("version", here)


def transport(is_tls: bool, host: str, has_key: bool) -> Finding:
    if is_tls:
        return good("transport", "TLS")
    if is_loopback(host):
        return good("transport", "plain HTTP on this machine")
    what = "the key and all data" if has_key else "all data"
    advice = "put a proxy that terminates TLS in front, and use https"
    return warning("transport", f"plain HTTP: {what} can be read on the way", advice)


def loop_lag(lag_ms: float, share: float) -> Finding:
    found = f"{lag_ms:.0f} ms behind"
    if share < 1:
        return warning(
            "load", f"{found}, {share:.0%} of the writes admitted", "fewer or larger writes, or a faster machine"
        )
    if lag_ms > LAG_MS:
        return warning("load", found, "something holds the event loop up: look at the machine's CPU and its neighbours")
    return good("load", found)


def log_health(is_read_only: bool, is_checkpoint_failed: bool) -> Finding:
    if is_read_only:
        advice = "a write or sync failed: read the server's log, mend the disk, start again"
        return bad("write-ahead log", "part of it takes no writes", advice)
    if is_checkpoint_failed:
        return warning(
            "write-ahead log", "the last checkpoint failed", "it grows until one works: look at the disk's space"
        )
    return good("write-ahead log", "takes writes")


def routers(count: int, stalled_count: int) -> Finding:
    found = counted(count, "router")
    if stalled_count:
        advice = "`topics router ls` says what holds them up: make room in the destination, or see to its disk"
        return warning("routers", f"{stalled_count:,} of {found} held up", advice)
    return good("routers", found)


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def summary(findings: Sequence[Finding]) -> str:
    problems, warnings = (
        sum(each.verdict is verdict for each in findings) for verdict in (Verdict.BAD, Verdict.WARNING)
    )
    if not problems and not warnings:
        return f"all {len(findings)} checks are good"
    return f"{counted(problems, 'problem')}, {counted(warnings, 'warning')} of {len(findings)} checks"


def _time(us: float) -> str:
    return f"{us:.0f} µs" if us < 1000 else f"{us / 1000:.1f} ms"
