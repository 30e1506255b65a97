"""Where positions are kept: a directory for each pipeline, below one that the runner is told or that the user has."""

from __future__ import annotations

import re
from os import environ
from typing import Final

from topics.errors import InvalidRequest
from topics.pipelinemodel import PipelineState

_STRANGE: Final = re.compile(r"[^A-Za-z0-9_.-]")


def default_checkpoints() -> str:
    """Where positions are kept unless somebody says: a directory of this user that survives a restart."""
    home = environ.get("HOME", "")
    state = environ.get("XDG_STATE_HOME", "") or (f"{home}/.local/state" if home else "")
    if not state:
        raise InvalidRequest(
            "neither XDG_STATE_HOME nor HOME says where positions could be kept: say --checkpoints DIR",
            field="checkpoints",
            expected="a directory",
        )
    return f"{state}/topics/pipelines"


def checkpoints_for(master: str, checkpoints: str) -> str:
    """The directory that is meant; on a cluster it has to be said, because all of it must be able to read it."""
    if checkpoints or master.startswith("local"):
        return checkpoints or default_checkpoints()
    raise InvalidRequest(
        f"with {master} say where positions are kept, in a directory that the whole cluster sees: --checkpoints "
        "hdfs://…, s3a://… or a shared path",
        field="checkpoints",
        expected="a path that every machine of the cluster sees",
    )


def checkpoint_of(root: str, state: PipelineState) -> str:
    """The directory of a pipeline's positions: no other pipeline ever has it, on no server."""
    return f"{root.rstrip('/')}/{_STRANGE.sub('_', state.pipeline)}-{state.number}-{state.created_ts}"
