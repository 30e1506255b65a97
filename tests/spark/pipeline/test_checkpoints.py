"""Where positions are kept."""

from __future__ import annotations

import pytest

from topics.errors import InvalidRequest
from topics.pipelinemodel import PipelineCondition, PipelineKind, PipelineState
from topics.spark.pipeline.checkpoints import checkpoint_of, checkpoints_for, default_checkpoints


def test_a_checkpoint_is_one_pipelines() -> None:
    def state(number: int, created: int) -> PipelineState:
        return PipelineState(
            pipeline="routes:chat.messages",
            kind=PipelineKind.ROUTES,
            condition=PipelineCondition.WAITING,
            created_ts=created,
            changed_ts=created,
            number=number,
            digest="",
        )

    assert checkpoint_of("/c/", state(3, 17)) == "/c/routes_chat.messages-3-17"
    assert len({checkpoint_of("/c", state(*each)) for each in ((1, 1), (1, 2), (2, 1))}) == 3


def test_where_positions_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert checkpoints_for("local[2]", "") == default_checkpoints() == "/state/topics/pipelines"
    assert checkpoints_for("spark://h:7077", "s3a://b/c") == "s3a://b/c"
    with pytest.raises(InvalidRequest, match="a directory that the whole cluster sees"):
        checkpoints_for("sc://h:15002", "")
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    with pytest.raises(InvalidRequest, match="say --checkpoints DIR"):
        default_checkpoints()
