"""What the answers say is tested over a socket in `test_joblane.py`; here is what only several together can show."""

from __future__ import annotations

import msgspec

from tests.engine.queuerig import QueueRig
from tests.server.probing import serving
from topics.engine.ticket import Ticket
from topics.model import AckedJobs, ClaimedJobs
from topics.server.jobanswer import acked_texts, claimed_texts


def acked(count: int, *skipped: int) -> AckedJobs:
    return AckedJobs(topic="q", partition=0, acked=count, skipped=list(skipped), ready=5, in_flight=6)


def test_acks_that_differ_have_answers_that_differ() -> None:
    rig = QueueRig()
    rig.queue()
    given = [acked(2), acked(2), acked(2, 7, 8), acked(2), acked(0, 9), acked(1), acked(1)]
    with serving(rig) as probe:
        texts = acked_texts(probe.context, probe.context.ready(), given, Ticket(), 0)
    told = [msgspec.json.decode(text) for text in texts]
    assert [(each["acked"], each["skipped"]) for each in told] == [(each.acked, each.skipped) for each in given]
    assert {(each["topic"], each["ready"], each["in_flight"]) for each in told} == {("q", 5, 6)}


def test_each_claim_has_its_own_jobs() -> None:
    rig = QueueRig()
    rig.queue(partitions=2)
    given = [
        ClaimedJobs(topic="q", partition=1, node="w", text=b",".join(jobs), seqs=[1] * len(jobs), ready=3)
        for jobs in ([b'{"$seq":1}', b'{"$seq":2}'], [], [b'{"$seq":3}'])
    ]
    with serving(rig) as probe:
        texts = claimed_texts(probe.context, probe.context.ready(), given, 0)
    told = [msgspec.json.decode(text) for text in texts]
    assert [[job["$seq"] for job in each["claimed"]] for each in told] == [[1, 2], [], [3]]
    assert [each["count"] for each in told] == [2, 0, 1] and {each["partition"] for each in told} == {1}
