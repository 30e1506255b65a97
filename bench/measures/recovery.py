"""Opening a directory that has a WAL and no snapshot: everything is replayed through `apply`."""

from __future__ import annotations

from pathlib import Path

from bench.bodies import bodies
from bench.figure import Figure, Unit, best
from bench.rig import NO_CHECKPOINTS, TURN, Step, Timer, recovered
from bench.sizes import BATCH, Sizes
from topics.clock import SystemClock
from topics.core.commands import Append
from topics.storage.fs import RealFs
from topics.testing.driver import Driver
from topics.wire.records import decode_write

BAR = 500_000
TOPIC = "orders"


def _fill(directory: Path, writes: int, records: int) -> None:
    """Write and stop without a checkpoint."""
    driver = Driver(RealFs(), SystemClock(), NO_CHECKPOINTS, str(directory))
    for number, body in enumerate(bodies(writes, records=records), 1):
        driver.engine.submit(Append(TOPIC, decode_write(body).records))
        if number % TURN == 0:
            driver.work()
    driver.engine.stop()
    driver.work()
    driver.engine.close()


def _rate(directory: Path, total: int) -> float:
    with Timer() as timer:
        engine = recovered(directory, NO_CHECKPOINTS, None)
    assert engine.state(TOPIC).count == total, "not all records were recovered"
    engine.stop()
    engine.close()
    return total / timer.seconds


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    total = sizes.recovery_records
    figures = []
    for name, records, bar in (("batches of 1000", BATCH, BAR), ("one-record writes", 1, None)):
        place = directory / str(records)
        step(f"writing {total} records in {name}")
        _fill(place, total // records, records)
        rates = []
        for number in range(sizes.rounds):
            step(f"recovery of {name}, round {number + 1}")
            rates.append(_rate(place, total))
        figures.append(Figure(name=f"recover from WAL, {name}", value=best(rates), unit=Unit.RECORDS_PER_S, bar=bar))
    return figures
