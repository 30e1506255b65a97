"""Clients that leave while their request waits: each is let go, also when its end is told twice, and holds nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.client.rig import on_loop, settle
from tests.server.lanerig import LaneRig, reached, serving
from topics.server.message import Request, Response

CONSUME = "/v0/topics/t/groups/g/consume"


def asked(rig: LaneRig, path: str, **body: Any) -> tuple[Request, list[Response]]:
    """A request that is under way, and the answers it got."""
    answers: list[Response] = []
    headers = {"content-type": "application/json"}
    request = Request("POST", path, "", headers, json.dumps(body).encode(), rig.context.clock.ticks_ns())
    rig.server._dispatch(request, answers.append)
    return request, answers


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v0/topics/t/diff", {"wait_ms": 30_000}),
        (CONSUME, {"wait_ms": 30_000}),
        ("/v0/sql", {"sql": "SHOW TOPICS"}),
    ],
    ids=["diff", "consume", "sql"],
)
@on_loop
async def test_a_client_that_ends_its_side_and_is_then_lost_is_gone_once(
    tmp_path: Path, path: str, body: dict[str, Any]
) -> None:
    async with serving(tmp_path) as rig:
        await rig.ask("PUT", "/v0/topics/t", {})
        request, answers = asked(rig, path, **body)
        while request.on_gone is None:
            await settle()
        gone = request.on_gone
        gone()
        gone()
        while not answers:
            await settle()
        await settle()
        assert len(answers) == 1
        assert rig.context.tasks == set() and rig.engine.groups.waiting_count() == 0


@on_loop
async def test_a_consumer_that_goes_while_its_claim_is_stored_leaves_nothing_claimed(tmp_path: Path) -> None:
    async with serving(tmp_path) as rig:
        await rig.ask("PUT", "/v0/topics/t", {"durability": "fsync"})
        await rig.ask("POST", "/v0/topics/t", {"records": [{"data": 1}]})
        entered, leave = rig.hold_syncs()
        request, answers = asked(rig, CONSUME, wait_ms=30_000)
        await reached(entered)
        assert answers == [] and request.on_gone is not None
        request.on_gone()
        leave.set()
        while not answers:
            await settle()
        (answer,) = answers
        assert answer.status == 200 and json.loads(answer.body)["count"] == 1
        (state,) = rig.engine.groups.list("t")
        assert (state.in_flight, state.committed_seq, state.lag) == (0, 0, 1), "it is there for the others at once"
