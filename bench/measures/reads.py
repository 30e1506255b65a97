"""Pages of 1000 records as wire-ready bytes, from sealed segments: off the disk, then out of the cache."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench.bodies import NODES, bodies
from bench.figure import Figure, Unit, best
from bench.peer import SqliteLog
from bench.rig import DEFAULTS, Step, Timer, forget_cached, recovered, running, write
from bench.sizes import BATCH, Sizes
from topics.engine.engine import BYTE_BUDGET_MAX, Engine

BAR = 3_000_000
FILTERED_BAR = 1_500_000
TOPIC = "orders"


async def _fill(directory: Path, batches: int) -> None:
    async with running(directory) as host:
        await write(host, TOPIC, bodies(batches, nodes=True))


def _read_all(engine: Engine, nodes: tuple[str, ...] = ()) -> float:
    """Records delivered a second."""
    from_seq = delivered = 0
    head_seq = engine.state(TOPIC).head_seq
    with Timer() as timer:
        while from_seq < head_seq:
            page = engine.read(TOPIC, from_seq, limit=BATCH, byte_budget=BYTE_BUDGET_MAX, nodes=nodes)
            from_seq = page.next_from_seq
            delivered += page.count
    return delivered / timer.seconds


def _peer_read_all(peer: SqliteLog, total: int, but_node: str | None = None) -> float:
    from_seq = delivered = 0
    with Timer() as timer:
        while from_seq < total:
            page = peer.read(from_seq, but_node)
            from_seq = page.last_seq
            delivered += page.delivered
    return delivered / timer.seconds


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    own, other = directory / "own", directory / "peer"
    other.mkdir()
    step("writing what is read")
    asyncio.run(_fill(own, sizes.read_batches))
    peer = SqliteLog(other / "log.sqlite")
    peer.write(bodies(sizes.read_batches, nodes=True))
    peer.checkpoint()
    total = sizes.read_batches * BATCH
    rates: dict[str, list[float]] = {}
    for number in range(sizes.rounds):
        step(f"reading, round {number + 1}")
        forget_cached(directory)
        engine = recovered(own, DEFAULTS, None)
        rates.setdefault("cold", []).append(_read_all(engine))
        rates.setdefault("cold peer", []).append(_peer_read_all(peer, total))
        rates.setdefault("warm", []).append(_read_all(engine))
        rates.setdefault("warm peer", []).append(_peer_read_all(peer, total))
        rates.setdefault("nodes", []).append(_read_all(engine, NODES[:1]))
        rates.setdefault("nodes peer", []).append(_peer_read_all(peer, total, NODES[0]))
        engine.close()
    peer.close()

    def figure(name: str, key: str, bar: float | None, note: str = "") -> Figure:
        rate, peer_rate = best(rates[key]), best(rates[f"{key} peer"])
        return Figure(name=name, value=rate, unit=Unit.RECORDS_PER_S, bar=bar, peer=peer_rate, note=note)

    half = "every second record, at random, is filtered; what is delivered counts"
    return [
        figure("read sealed, page cache dropped", "cold", None, "what the disk gives"),
        figure("read sealed", "warm", BAR),
        figure("read sealed, node-filtered", "nodes", FILTERED_BAR, half),
    ]
