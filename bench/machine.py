"""What a figure depends on: the machine it was measured on, and the peers."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.document import Part
from bench.peers import beanstalkd, nats, postgres, redis
from bench.peers.process import LeftOut


def facts() -> dict[str, str]:
    """The machine in a few words, without anything that names it."""
    return {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "Python": f"{platform.python_implementation()} {'.'.join(map(str, sys.version_info[:3]))}",
        "load before": f"{os.getloadavg()[0]:.1f} running processes in the minute before; above 0 costs every side",
    }


def peers(part: Part) -> dict[str, str]:
    """Whom a part is measured against."""
    if part is Part.ENGINE:
        return {"peer": f"SQLite {sqlite3.sqlite_version}, WAL mode"}
    if part is Part.FLOODS:
        return {}
    if part is Part.SPARK:
        return {"peer": f"Spark {_version(_spark)} on Parquet"}
    if part is Part.PIPELINES:
        return {"with": f"Spark {_version(_spark)}, delta-rs {version('deltalake')}"}
    if part is Part.SQL:
        return {"peer": f"DuckDB {version('duckdb')}"}
    if part is Part.GROUPS:
        return {"peer": f"Redis {_version(redis.version)}"}
    if part is Part.HEAPS:
        return {"peers": f"Redis {_version(redis.version)}, beanstalkd {_version(beanstalkd.version)}"}
    servers = {"Redis": redis.version, "NATS": nats.version}
    if part in (Part.SERVER, Part.QUEUES):
        servers["PostgreSQL"] = postgres.version
    if part is Part.QUEUES:
        servers["beanstalkd"] = beanstalkd.version
    return {"peers": ", ".join(f"{name} {_version(ask)}" for name, ask in servers.items())}


def _spark() -> str:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        raise LeftOut("Spark is not installed") from None


def _version(ask: Callable[[], str]) -> str:
    try:
        return ask()
    except LeftOut:
        return "not installed"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
