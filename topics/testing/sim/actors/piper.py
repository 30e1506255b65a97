"""Pipers send several requests in one go and see that the server carried them out in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from topics.testing.sim.actor import Actor, Routine
from topics.testing.sim.http import request_bytes

if TYPE_CHECKING:
    from topics.testing.sim.world import World

PATIENCE_MS = 4000.0
LOOK_MS = 40.0
_HEAD_END = b"\r\n\r\n"

Answer = tuple[int, dict[str, Any]]


class Piper(Actor):
    pause_ms = 300.0

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, number)
        self._count = 0

    def routine(self) -> Routine:
        self._count += 1
        path = f"/v0/topics/{self.name}-{self._count}"
        requests = (
            request_bytes("PUT", path, {"type": "queue", "durability": self.chance.choice(("disk", "fsync"))}),
            request_bytes("POST", path, {"records": [{"data": 1}]}),
            request_bytes("POST", f"{path}/claim", {"node": self.name, "max": 1}),
            request_bytes("POST", path, {"records": [{"data": 2}]}),
            request_bytes("POST", f"{path}/diff", {"from_seq": 0}),
            request_bytes("DELETE", path),
            request_bytes("POST", f"{path}/diff", {"from_seq": 0}),
        )
        received = bytearray()
        link = self.world.network.connect(lambda data: received.extend(data or b""))
        if link is None:
            return
        self.world.notes.counts["pipeline"] += 1
        link.send(b"".join(requests))
        waited_ms = 0.0
        while not link.is_cut and waited_ms < PATIENCE_MS and len(answers_in(received)) < len(requests):
            yield LOOK_MS
            waited_ms += LOOK_MS
        link.cut()
        problem = out_of_order(answers_in(received))
        if problem:
            self.world.notes.problems.append(f"pipeline: {problem}")


def out_of_order(answers: list[Answer]) -> str:
    """What in the answers to the requests above shows that one of them overtook another; empty when nothing does.
    An answer behind one that failed tells nothing."""
    if len(answers) > 1 and answers[0][0] == 409:
        return "a queue could not be created: a later write had created its topic"
    good = 0
    while good < len(answers) and answers[good][0] in (200, 201):
        good += 1
    if good > 1 and answers[1][1]["created"]:
        return "a write created the topic that the request before it creates"
    if good > 2 and [job["$seq"] for job in answers[2][1]["claimed"]] != [1]:
        return "a claim did not get the job that was written before it"
    if good > 4 and [record["$seq"] for record in answers[4][1]["records"]] != [1, 2]:
        return "a read did not see what was written before it"
    if good > 6:
        return "a read found a topic that was deleted before it"
    return ""


def answers_in(received: bytes | bytearray) -> list[Answer]:
    """The whole answers at the beginning of some bytes; each has a length."""
    found: list[Answer] = []
    at = 0
    while (end := received.find(_HEAD_END, at)) >= 0:
        head = bytes(received[at:end]).lower()
        length = head.partition(b"content-length: ")[2].partition(b"\r\n")[0]
        body_at = end + len(_HEAD_END)
        at = body_at + int(length or 0)
        if at > len(received):
            break
        found.append((int(head[9:12]), msgspec.json.decode(bytes(received[body_at:at]))))
    return found
