"""A server at half of what it can do, for half an hour: its memory, its files, its threads and its tasks stay as they
were.

`SOAK_MINUTES` sets another time, to show it in short.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from dataclasses import dataclass, fields
from os import environ
from pathlib import Path
from statistics import median

import pytest

import topics
from proof.results import save
from proof.soak.progress import tell
from proof.tree import tree_hash
from tests.client.rig import on_loop
from tests.e2e.farload import doors
from tests.e2e.served import served
from tests.e2e.steadyload import SteadyLoad

MINUTES = 30.0
FLAT_OUT_S = 5.0
SAMPLES = 300
"""How often the process is looked at, all in all."""
PARTS = 3
"""The first part is for warming up; the last is compared with those between."""
MEMORY_SLACK = 1.1
MEMORY_SLACK_BYTES = 16 << 20
COUNT_SLACK = 4
GRPC = {"TOPICS_NO_GRPC": "0", "TOPICS_GRPC_PORT": "0"}


@dataclass(frozen=True, slots=True)
class Sample:
    memory_bytes: int
    files: int
    threads: int
    tasks: int

    @classmethod
    def of(cls, pid: int, tasks_file: Path) -> Sample:
        process = Path(f"/proc/{pid}")
        resident_pages = int((process / "statm").read_text().split()[1])
        return cls(
            resident_pages * os.sysconf("SC_PAGE_SIZE"),
            len(list((process / "fd").iterdir())),
            len(list((process / "task").iterdir())),
            int(tasks_file.read_text()),
        )


def medians(samples: list[Sample]) -> dict[str, float]:
    return {each.name: median(getattr(sample, each.name) for sample in samples) for each in fields(Sample)}


def growth(samples: list[Sample]) -> tuple[dict[str, float], dict[str, float]]:
    """The medians of the time after the first part, without the last one, and those of the last."""
    part = len(samples) // PARTS
    assert part, f"{len(samples)} samples are too few to compare"
    return medians(samples[part:-part]), medians(samples[-part:])


def check_flat(before: dict[str, float], after: dict[str, float]) -> None:
    most = {name: value + COUNT_SLACK for name, value in before.items()}
    most["memory_bytes"] = before["memory_bytes"] * MEMORY_SLACK + MEMORY_SLACK_BYTES
    grown = {name: (before[name], value) for name, value in after.items() if value > most[name]}
    assert not grown, f"grew under a steady load, from what it was to what it is: {grown}"


@pytest.mark.parametrize("name", ["memory_bytes", "files", "threads", "tasks"])
def test_what_grows_is_found(name: str) -> None:
    flat = dict.fromkeys(("memory_bytes", "files", "threads", "tasks"), 100.0)
    flat["memory_bytes"] = 1e9
    check_flat(flat, flat)
    with pytest.raises(AssertionError, match=name):
        check_flat(flat, {**flat, name: flat[name] * 1.2})


@pytest.mark.soak
@pytest.mark.timeout(0)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc, to look at a process")
@on_loop
async def test_a_steady_load_leaves_nothing_behind(tmp_path: Path) -> None:
    minutes = float(environ.get("SOAK_MINUTES", MINUTES))
    tasks_file = tmp_path / "tasks"
    counted = (sys.executable, "-m", "tests.e2e.counted", str(tasks_file))
    samples: list[Sample] = []
    with served(tmp_path / "data", "--checkpoint-ms", "5000", variables=GRPC, prefix=counted) as server:
        pid, due_s = server.process.pid, 0.0

        def look() -> None:
            nonlocal due_s
            if time.monotonic() >= due_s:
                due_s = time.monotonic() + minutes * 60 / SAMPLES
                samples.append(Sample.of(pid, tasks_file))
                tell(len(samples), SAMPLES)

        async with topics.connect(server.url) as client, doors(server.url, server.grpc_address) as far:
            load = SteadyLoad(client, far)
            await load.prepare()
            following = asyncio.create_task(load.follow())
            flat_out = await load.run(FLAT_OUT_S)
            half = await load.run(minutes * 60, flat_out / 2, look)
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
        assert server.stop() == 0
    before, after = growth(samples)
    counts = {
        "tree": tree_hash(),
        "minutes": minutes,
        "rounds": load.rounds,
        "followed": load.followed,
        "samples": len(samples),
    }
    rates = {"rounds_per_s_flat_out": round(flat_out, 1), "rounds_per_s": round(half, 1)}
    check_flat(before, after)
    save("load", f"make soak ONLY=load MINUTES={minutes:g}", {**counts, **rates, "before": before, "after": after})
