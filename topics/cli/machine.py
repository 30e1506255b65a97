"""What a data directory stands on: its disk and file system, the limits and the clock of the machine, its ports."""

from __future__ import annotations

import platform
import re
import resource
import secrets
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from importlib.util import find_spec
from os import environ
from os.path import abspath, dirname

from topics import __version__
from topics.cli import checkup
from topics.cli.checkup import Finding, bad, good, warning
from topics.cli.listening import ports
from topics.cli.pretty import moment
from topics.clock import SystemClock
from topics.engine.anatomy import dissect
from topics.errors import DirectoryLocked, InvalidSetting
from topics.limits import KIB
from topics.settings import Settings, load, strangers
from topics.storage.fs import RealFs

SYNC_COUNT = 50
SYNC_BYTES = 4 * KIB
PROC_BYTES_MAX = 1 << 20
_ESCAPED = re.compile(r"\\([0-7]{3})")
"""A blank in the path of a mount."""


def machine(directory: str | None) -> Iterator[Finding]:
    """Look at everything; `directory` goes before the one of the settings."""
    yield _versions()
    try:
        settings = load()
    except InvalidSetting as error:
        yield bad("settings", error.message.replace("\n", "; "), "correct them; `topics settings` shows them all")
        return
    settings = settings if directory is None else replace(settings, data_dir=directory)
    yield _settings()
    yield checkup.exposure(settings.host, settings.api_keys is not None)
    yield from ports(settings)
    yield from _directory(settings)
    yield checkup.open_files(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    total = _memory_bytes(_proc("/proc/meminfo"))
    if total is not None:
        yield checkup.memory(total, settings.hot_bytes)


def _versions() -> Finding:
    names = ("msgspec", "numpy", "xxhash")
    others = ", ".join(f"{name} {metadata.version(name)}" for name in names)
    found = f"topics {__version__}, Python {platform.python_version()}, {others}"
    if find_spec("uvloop") is None:
        return warning("versions", found, "the server is faster with uvloop: `pip install uvloop`")
    return good("versions", found)


def _settings() -> Finding:
    unknown = strangers(environ)
    if unknown:
        found = ", ".join(f"{name} is set but is no setting" for name in unknown)
        return warning("settings", found, "; ".join(dict.fromkeys(unknown.values())))
    return good("settings", "all can be used")


def _directory(settings: Settings) -> Iterator[Finding]:
    fs, path = RealFs(), settings.data_dir.rstrip("/") or "/"
    place = path
    if fs.exists(path):
        yield _lock(fs, path)
    else:
        while place and not fs.exists(place):
            place = dirname(place)
        place = place or "."
        yield good("directory", f"{path} is not there yet and will be made")
    yield checkup.local_clock(now := SystemClock().now_ms(), _written_ms(fs, path), moment(now))
    mount = _mount(_proc("/proc/self/mounts"), place)
    if mount is not None:
        yield checkup.file_system(*mount)
    held = _mount(_proc("/proc/self/mounts"), settings.witness_dir) if fs.exists(settings.witness_dir) else None
    yield checkup.witness("" if held is None else held[0], settings.witness_dir)
    try:
        yield checkup.disk_space(fs.free_bytes(place), 2 * settings.wal_shards * settings.wal_file_bytes)
        yield checkup.sync_speed(_sync_times_us(fs, place))
    except OSError as error:
        yield bad(
            "disk sync", f"{place}: {error.strerror}", "the user that runs the server must be able to write there"
        )


def _lock(fs: RealFs, path: str) -> Finding:
    if not fs.exists(f"{path}/wal"):
        return good("directory", f"{path} holds no data yet")
    try:
        fs.lock(f"{path}/lock").release()
    except DirectoryLocked as held:
        return good("directory", f"{path} is in use by {held.detail['holder']}")
    except OSError as error:
        return bad("directory", f"{path}: {error.strerror}", "it must belong to the user that runs the server")
    return good("directory", f"{path} is there, and nobody has it open")


def _sync_times_us(fs: RealFs, place: str) -> list[float]:
    clock = SystemClock()
    path = f"{place}/doctor-{secrets.token_hex(4)}.tmp"
    file = fs.open(path, "create")
    times = []
    try:
        file.allocate(SYNC_COUNT * SYNC_BYTES)
        file.sync()
        for number in range(SYNC_COUNT):
            started_ns = clock.ticks_ns()
            file.write_at(number * SYNC_BYTES, [b"x" * SYNC_BYTES])
            file.sync()
            times.append((clock.ticks_ns() - started_ns) / 1000)
    finally:
        file.close()
        fs.unlink(path)
    return times


def _written_ms(fs: RealFs, path: str) -> int | None:
    """When the newest WAL file says it was made."""
    made = []
    for name in fs.list(f"{path}/wal"):
        if name.endswith(".wal"):
            header = next(dissect(fs, f"{path}/wal/{name}"), None)
            made.append(int(((header and header.about) or {}).get("created_ms", 0)))
    return max(made, default=None)


def _mount(text: str, place: str) -> tuple[str, str] | None:
    """The kind of the file system a path is on, and where that is mounted; None where the system does not tell."""
    absolute = abspath(place)
    told = [line.split()[1:3] for line in text.splitlines() if len(line.split()) > 2]
    mounts = [(_ESCAPED.sub(lambda found: chr(int(found[1], 8)), at), kind) for at, kind in told]
    holding = [(at, kind) for at, kind in mounts if f"{absolute}/".startswith(f"{at.rstrip('/')}/")]
    if not holding:
        return None
    at, kind = max(holding, key=lambda mount: len(mount[0]))
    return kind, at


def _memory_bytes(text: str) -> int | None:
    for line in text.splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * KIB
    return None


def _proc(path: str) -> str:
    """A file that the kernel makes up; empty where there is none."""
    try:
        file = RealFs().open(path, "read")
    except OSError:
        return ""
    try:
        return file.read_at(0, PROC_BYTES_MAX).decode("utf-8", "replace")
    finally:
        file.close()
