"""docs/guides/pipelines.md from top to bottom, with its runner in the session that all tests share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.postgresrig import directory_of_programs, postgres
from tests.tour import Block, Tour, blocks
from topics.pipelinemodel import RunState
from topics.spark.pipeline.runner import Runner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "pipelines.md"
RUN = "topics pipeline run --available-now\n"
WRITTEN_DSN = "postgresql://postgres@127.0.0.1:5432/postgres"


class SparkTour(Tour):
    """A tour whose commands for a runner do not start a Spark of their own."""

    def __init__(self, directory: Path, spark: SparkSession) -> None:
        super().__init__(directory)
        self._spark = spark

    def take(self, block: Block) -> None:
        if not (block.runs and block.code.startswith(RUN)):
            super().take(block)
            return
        assert block.code == RUN * block.code.count("\n")
        for _ in block.code.splitlines():
            runner = Runner(
                self._spark, url=self.url, checkpoints=str(self._directory / "positions"), available_now=True
            )
            ended = runner.run()
            assert ended and {each.state for each in ended} == {RunState.DONE}, ended


def test_the_guide(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if directory_of_programs() is None:
        pytest.skip("no PostgreSQL (Debian: apt install postgresql)")
    with postgres() as address, SparkTour(tmp_path, spark) as place:
        monkeypatch.setenv("CHAT_DSN", address)
        for block in blocks(GUIDE.read_text().replace(WRITTEN_DSN, address)):
            place.take(block)
