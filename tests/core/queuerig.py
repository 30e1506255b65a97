"""A queue driven by hand beside its oracle: every step is done to both, and what can be seen is compared."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import msgspec

from tests.core.rig import Rig
from topics.core import move
from topics.core.commands import Ack, Append, Claim, Claimer, Command, Extend, Nack
from topics.core.leases import lease_id, parse_lease_id
from topics.core.outcome import Outcome
from topics.core.records import Records
from topics.model import AckedJobs, ClaimedJobs, ExtendedJobs, NackedJobs, QueueState
from topics.testing.oraclequeue import OracleQueue

DEAD = "q.dead"


class QueueRig(Rig):
    """A machine whose moves go all the way, and whose records are visible at once."""

    def keep(self, outcome: Outcome) -> Outcome:
        super().keep(outcome)
        for begun in outcome.moves:
            self.store(begun.facts)
            for landing in move.land(self.machine, begun.log, begun.fact, self.now_ms):
                self.store(landing.outcome.facts)
            self.store(move.finish(self.machine, begun.log, begun.fact.number).facts)
        self.show()
        return outcome

    def show(self) -> None:
        for log in self.machine.logs.values():
            log.visible_seq = log.head_seq

    def replayed(self) -> QueueRig:
        base = super().replayed()
        other = QueueRig(self.machine.bounds)
        other.machine, other.facts, other.now_ms = base.machine, base.facts, base.now_ms
        other.show()
        return other

    def queue_state(self, topic: str = "q") -> QueueState:
        log = self.log(topic)
        assert log.queue is not None
        log.queue.leases.expire(self.now_ms)
        return log.queue.state(log)

    def rows(self, topic: str = "q") -> list[tuple[Any, ...]]:
        """All that is known of jobs that were ever touched, but for the time of those that are free."""
        log = self.log(topic)
        assert log.queue is not None
        log.queue.leases.expire(self.now_ms)
        return [tuple(lease) for lease in log.queue.leases]


def counts_of(state: QueueState) -> tuple[int, int, int, int]:
    return state.ready, state.in_flight, state.dead_lettered, state.delayed


class Pair:
    def __init__(self, *, crashes: bool = True, **config: Any) -> None:
        """With `crashes`, it is known what was there after each step, for `check_crashes`."""
        self.rig = QueueRig()
        dead_letter = DEAD if config.get("max_deliveries") else None
        self.rig.configure("q", type="queue", dead_letter=dead_letter, **config)
        self.oracle = OracleQueue(**{name: value for name, value in config.items() if name in OracleQueue.__slots__})
        self.held: list[tuple[str, int, str]] = []
        """Every (node, seq, lease id) ever handed out."""
        self.history: list[tuple[int, OracleQueue]] | None = [] if crashes else None
        """After each step: how many facts were stored, and what the oracle said."""
        self.note()

    @property
    def now_ms(self) -> int:
        return self.rig.now_ms

    def note(self) -> None:
        if self.history is not None:
            self.history.append((len(self.rig.facts), copy.deepcopy(self.oracle)))

    def step(self, command: Command) -> Any:
        return self.rig.step(command).reply

    def wait(self, ms: int) -> None:
        self.rig.now_ms += ms

    def write(self, count: int = 1, tag: str = "", delay_ms: int = 0) -> None:
        drafts = [{"data": number, "tag": tag} for number in range(count)]
        self.step(Append("q", Records.of(drafts), delay_ms=delay_ms))
        self.oracle.write(count, self.now_ms, tag, self.now_ms + delay_ms if delay_ms else 0)
        self.note()

    def claim(self, *claimers: tuple[str, int], lease_ms: int | None = None) -> list[ClaimedJobs]:
        wanted = self.oracle.claim(sum(most for _, most in claimers), self.now_ms)
        asked = tuple(Claimer(node, most, lease_ms) for node, most in claimers)
        answers: tuple[ClaimedJobs, ...] = self.step(Claim("q", asked))
        got = sorted(seq for answer in answers for seq in answer.seqs)
        assert got == sorted(wanted.seqs), f"claimed {got}, not {wanted.seqs}"
        counts = [answer.count for answer in answers]
        for count, (_, most) in zip(counts, claimers, strict=True):
            assert count == most or count >= max(counts) - 1, f"{counts} is not even for {claimers}"
        for answer, (node, _) in zip(answers, claimers, strict=True):
            assert answer.seqs == sorted(answer.seqs)
            for seq, text in zip(answer.seqs, answer.jobs, strict=True):
                job = msgspec.json.decode(text)
                known = self.oracle.handed_out(seq, node, parse_lease_id(job["lease_id"]), self.now_ms, lease_ms)
                assert (job["$seq"], job["deliveries"], job["deadline"]) == (seq, known.deliveries, known.deadline_ms)
                assert job.get("$tag", "") == known.tag
                assert (node, seq, job["lease_id"]) not in self.held
                self.held.append((node, seq, job["lease_id"]))
            assert answer.ready == len(self.oracle.ready(self.now_ms)) or answer is not answers[-1]
        self.note()
        return list(answers)

    def _tokens(self, lease_ids: Sequence[str] | None) -> list[int] | None:
        return None if lease_ids is None else [parse_lease_id(text) for text in lease_ids]

    def ack(self, node: str, seqs: Sequence[int], lease_ids: Sequence[str] | None = None) -> AckedJobs:
        own = self.oracle.own(node, seqs, self.now_ms, self._tokens(lease_ids))
        answer: AckedJobs = self.step(Ack("q", node, seqs, lease_ids))
        self.oracle.ack(own)
        assert answer.acked == len(own) and set(seqs) - {job.seq for job in own} <= set(answer.skipped)
        self.note()
        return answer

    def nack(
        self,
        node: str,
        seqs: Sequence[int],
        lease_ids: Sequence[str] | None = None,
        delay_ms: int = 0,
        undelivered: bool = False,
    ) -> NackedJobs:
        own = self.oracle.own(node, seqs, self.now_ms, self._tokens(lease_ids))
        answer: NackedJobs = self.step(Nack("q", node, seqs, lease_ids, delay_ms=delay_ms, undelivered=undelivered))
        self.oracle.nack(own, self.now_ms, delay_ms, undelivered)
        assert answer.nacked == len(own)
        self.note()
        return answer

    def extend(self, node: str, seqs: Sequence[int], lease_ms: int, lease_ids: Sequence[str] | None = None) -> None:
        own = self.oracle.own(node, seqs, self.now_ms, self._tokens(lease_ids))
        answer: ExtendedJobs = self.step(Extend("q", node, seqs, lease_ms, lease_ids))
        self.oracle.extend(own, self.now_ms, lease_ms)
        assert answer.deadlines == {job.seq: self.now_ms + lease_ms for job in own}
        self.note()

    def delete(self, before_seq: int | None = None, tag: str | None = None) -> None:
        expected = self.oracle.delete(self.now_ms, before_seq, tag)
        assert self.rig.delete("q", before_seq, tag).deleted == expected
        self.note()

    # ---- comparing

    def check(self) -> None:
        compare(self.rig, self.oracle)

    def check_replay(self) -> None:
        """What is stored says the same as memory does."""
        other = self.rig.replayed()
        compare(other, self.oracle)
        assert other.rows() == self.rig.rows()

    def check_crashes(self) -> None:
        """Whatever prefix of the facts survives is what was there after some step, and nothing else."""
        assert self.history is not None
        for fact_count, oracle in self.history:
            dead = QueueRig()
            dead.now_ms = self.now_ms
            dead.facts = self.rig.facts[:fact_count]
            compare(dead.replayed(), copy.deepcopy(oracle))


def compare(rig: QueueRig, oracle: OracleQueue) -> None:
    assert counts_of(rig.queue_state()) == oracle.counts(rig.now_ms)
    live = {job.seq: job for job in oracle.live(rig.now_ms)}
    assert rig.seqs(topic="q") == sorted(live)
    queue = rig.log("q").queue
    assert queue is not None
    for seq, job in live.items():
        lease = queue.leases.get(seq)
        assert (lease.deliveries if lease is not None else 0) == job.deliveries
        if lease is not None and job.node:
            assert (lease.node, lease.token) == (job.node, job.token)
            assert (lease.due_ms > rig.now_ms) == job.is_held(rig.now_ms)
    assert {seq for seq, *_ in rig.rows()} <= set(live)


__all__ = ["DEAD", "Pair", "QueueRig", "compare", "counts_of", "lease_id"]
