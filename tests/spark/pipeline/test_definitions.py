from __future__ import annotations

import pytest

from topics.spark.pipeline import definitions
from topics.spark.pipeline.definitions import Definitions
from topics.sync import Client
from topics.testing.served import RunningServer


def test_pipelines_are_found_over_all_pages(
    topics_server: RunningServer, topics_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definitions, "PAGE_SIZE_MAX", 2)
    topics_client.sql("CREATE TOPIC s; CREATE TOPIC t")
    names = [f"p{number}" for number in range(5)]
    for name in names:
        topics_client.sql(f"CREATE PIPELINE {name} AS INSERT INTO TOPIC t SELECT seq AS n FROM STREAM s")
    server = Definitions(topics_server.url, "", 60_000)
    assert [state.pipeline for state in server.pipelines()] == names
    server.close()
