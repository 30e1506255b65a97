"""Eight workers that claim eight jobs, complete them and claim the next, until a queue is empty."""

from __future__ import annotations

from pathlib import Path

from bench.clients.jobs import Workers
from bench.clients.load import Client
from bench.contest import compete, figures
from bench.figure import Figure, Unit
from bench.rig import Step
from bench.sizes import Sizes
from bench.workforce import Workforce

WORKERS = 8
BATCH = 8
FACTORS = (0.6, 1.0, 1.5, 3.0)
"""Of Redis, NATS, beanstalkd and PostgreSQL."""


def run(sizes: Sizes, directory: Path, step: Step) -> list[Figure]:
    workforce = Workforce(Client(directory), Workers(directory, WORKERS, BATCH), sizes.queue_jobs)
    name = f"claim {BATCH} jobs and complete them, {WORKERS} workers"
    outcomes = compete(workforce.sides(), sizes.rounds, directory, step, name)
    return figures(name, Unit.RECORDS_PER_S, outcomes, FACTORS)
