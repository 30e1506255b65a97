"""The verbs of jobs over HTTP.

A claim is not tried again when its answer is lost: it may have leased jobs, which are free again when their leases run
out. When nobody waits for its answer any more, the server is told so, and jobs that were on their way are given back.
An ack, a nack and an extend name their leases, so that saying them twice is the same as saying them once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlencode

import msgspec

from topics.client.body import plain_body, results_body
from topics.client.caller import Caller
from topics.client.connection import Answer
from topics.client.jobtransport import ClaimRequest, HeldRequest, LeasesRequest, RedriveRequest, ResultRequest
from topics.client.remoteanswer import decoded, topic_path
from topics.errors import TopicsError
from topics.leasemodel import LeasePage
from topics.limits import CLAIM_WAIT_MS_MAX
from topics.model import AckedJobs, ClaimedJobs, CompletedJobs, ExtendedJobs, NackedJobs, Redriven

GIVE_BACK_S_MAX: Final = 2.0
"""How long a client that is closed waits for the server to take jobs back."""


class _Claimed(msgspec.Struct):
    topic: str
    claimed: list[msgspec.Raw]
    ready: int
    partition: int = 0


class _Seq(msgspec.Struct, rename={"seq": "$seq"}):
    seq: int
    lease_id: str


_seqs = msgspec.json.Decoder(_Seq)


class RemoteJobs:
    """The part of a transport over HTTP that is about queues."""

    _caller: Caller

    def __init__(self) -> None:
        self._giving_back: set[asyncio.Future[None]] = set()

    async def claim(self, topic: str, request: ClaimRequest) -> ClaimedJobs:
        fields: dict[str, Any] = {"node": request.node, "max": request.max, "lease_ms": request.lease_ms}
        for name in ("wait_ms", "partition"):
            if value := getattr(request, name):
                fields[name] = value
        wait_ms = min(request.wait_ms, CLAIM_WAIT_MS_MAX)
        path = f"{topic_path(topic)}/claim"
        answer = await self._caller.call(
            "POST",
            path,
            plain_body(fields),
            repeatable=False,
            wait_ms=wait_ms,
            abandoned=lambda answer: self._give_back(topic, request, answer),
        )
        return _claimed(request, answer)

    def _give_back(self, topic: str, request: ClaimRequest, answer: Answer) -> None:
        """Jobs came for somebody who does not wait for them any more."""
        if answer.status != 200 or not (jobs := _claimed(request, answer)).seqs:
            return
        held = HeldRequest(
            node=request.node,
            seqs=jobs.seqs,
            lease_ids=[_seqs.decode(job).lease_id for job in jobs.jobs],
            partition=request.partition,
        )
        task = asyncio.ensure_future(self._release(topic, held))
        self._giving_back.add(task)
        task.add_done_callback(self._giving_back.discard)

    async def _release(self, topic: str, held: HeldRequest) -> None:
        # When nobody can be told they come back when their leases run out.
        with suppress(TopicsError):
            await self.nack(topic, held, delay_ms=0, undelivered=True)

    async def settle(self) -> None:
        """Returns when all that came too late is given back, or cannot be."""
        await self._caller.heard_out(GIVE_BACK_S_MAX)
        if self._giving_back:
            await asyncio.wait(self._giving_back, timeout=GIVE_BACK_S_MAX)

    async def ack(self, topic: str, request: HeldRequest) -> AckedJobs:
        path = f"{topic_path(topic)}/ack"
        return decoded(await self._caller.call("POST", path, plain_body(_held(request)), repeatable=True), AckedJobs)

    async def nack(self, topic: str, request: HeldRequest, *, delay_ms: int, undelivered: bool = False) -> NackedJobs:
        # Without leases a second one might give back what the same worker has got again in between.
        fields = _held(request) | {"delay_ms": delay_ms}
        if undelivered:
            fields["delivered"] = False
        body = plain_body(fields)
        path, named = f"{topic_path(topic)}/nack", request.lease_ids is not None
        return decoded(await self._caller.call("POST", path, body, repeatable=named), NackedJobs)

    async def extend(self, topic: str, request: HeldRequest, *, lease_ms: int) -> ExtendedJobs:
        body = plain_body(_held(request) | {"lease_ms": lease_ms})
        return decoded(
            await self._caller.call("POST", f"{topic_path(topic)}/extend", body, repeatable=True), ExtendedJobs
        )

    async def complete(self, topic: str, request: HeldRequest, results: Sequence[ResultRequest]) -> CompletedJobs:
        # Repeated, it would be told that the jobs are gone, and not that it was the one who completed them.
        body = results_body(_held(request), results)
        return decoded(
            await self._caller.call("POST", f"{topic_path(topic)}/ack", body, repeatable=False), CompletedJobs
        )

    async def leases(self, topic: str, request: LeasesRequest) -> LeasePage:
        query = {"after": request.after, "limit": request.limit, "state": "delayed" if request.delayed else "leased"}
        if request.partition:
            query["partition"] = request.partition
        path = f"{topic_path(topic)}/leases?{urlencode(query)}"
        return decoded(await self._caller.call("GET", path, repeatable=True), LeasePage)

    async def redrive(self, topic: str, request: RedriveRequest) -> Redriven:
        fields: dict[str, Any] = {"limit": request.limit, "from_seq": request.from_seq, "dry_run": request.dry_run}
        for name in ("destination", "match", "source", "reason", "before_seq"):
            if (value := getattr(request, name)) is not None:
                fields[name] = value
        if request.partition:
            fields["partition"] = request.partition
        path = f"{topic_path(topic)}/redrive"
        # What has moved is not there to be moved again, so that only the count would be wrong: the caller should know.
        return decoded(await self._caller.call("POST", path, plain_body(fields), repeatable=False), Redriven)


def _claimed(request: ClaimRequest, answer: Answer) -> ClaimedJobs:
    found = decoded(answer, _Claimed)
    return ClaimedJobs(
        topic=found.topic,
        partition=found.partition,
        node=request.node,
        text=b",".join(found.claimed),
        seqs=[_seqs.decode(job).seq for job in found.claimed],
        ready=found.ready,
    )


def _held(request: HeldRequest) -> dict[str, Any]:
    fields: dict[str, Any] = {"node": request.node, "seqs": list(request.seqs)}
    if request.lease_ids is not None:
        fields["lease_ids"] = list(request.lease_ids)
    if request.partition:
        fields["partition"] = request.partition
    return fields
