"""A consumer group driven by hand beside its oracle: every step is done to both, and what can be seen is compared."""

from __future__ import annotations

import copy
from typing import Any

from tests.core.queuerig import QueueRig
from topics.core.commands import Append, Command
from topics.core.group import Group, parse_claim_id
from topics.core.groupcommands import AckGroup, Consume, DropGroup, ExtendGroup, NackGroup, ResetGroup
from topics.core.groupranges import ACKED, CLAIMED, LEAVING
from topics.core.groups import observe
from topics.core.records import Records
from topics.groupmodel import EARLIEST, LATEST, AckedGroup, GroupBatch, Start, StartKind, at_seq
from topics.testing.oraclegroup import End, OracleGroup

DEAD = "t.dead"
FAR = 2**40


class GroupRig(QueueRig):
    """A machine whose moves go all the way, and whose records are visible at once."""

    def replayed(self) -> GroupRig:
        base = super().replayed()
        other = GroupRig(self.machine.bounds)
        other.machine, other.facts, other.now_ms = base.machine, base.facts, base.now_ms
        return other

    def group(self, name: str = "g") -> Group | None:
        log = self.log()
        found = log.groups.get(name)
        if found is not None:
            observe(log, found, self.now_ms)
        return found


class Pair:
    def __init__(self, *, crashes: bool = True, **config: Any) -> None:
        """With `crashes`, it is known what was there after each step, for `check_crashes`."""
        self.rig = GroupRig()
        dead_letter = DEAD if config.get("max_deliveries") else None
        self.rig.configure("t", dead_letter=dead_letter, visibility_ms=100, **config)
        self.oracle = OracleGroup(**config)
        self.claims: list[GroupBatch] = []
        """Every one that was ever made."""
        self.committed = 0
        self.history: list[tuple[int, OracleGroup]] | None = [] if crashes else None
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

    # ---- the log

    def write(self, count: int = 1, tag: str = "") -> None:
        self.step(Append("t", Records.of([{"data": number, "tag": tag} for number in range(count)])))
        self.oracle.write(count, self.now_ms, tag)
        self.note()

    def delete(self, before_seq: int | None = None, tag: str | None = None) -> None:
        expected = self.oracle.delete(self.now_ms, before_seq, tag)
        assert self.rig.delete("t", before_seq, tag).deleted == expected
        self.note()

    # ---- the group

    def _cursor(self, start: Start) -> int:
        live = self.oracle.live(self.now_ms)
        match start.kind:
            case StartKind.EARLIEST:
                return live[0].seq - 1 if live else self.oracle.head_seq
            case StartKind.LATEST:
                return self.oracle.head_seq
            case _:
                return min(max(start.value - 1, 0), self.oracle.head_seq)

    def consume(self, consumer: str = "", limit: int = 3, start: Start = EARLIEST, lease_ms: int = 100) -> GroupBatch:
        now_ms, oracle = self.now_ms, self.oracle
        if not oracle.start_seq:
            oracle.place(self._cursor(start))
            self.committed = oracle.start_seq - 1
        batch = self.step(Consume("t", "g", start=start, limit=limit, consumer=consumer, visibility_ms=lease_ms))
        assert isinstance(batch, GroupBatch)
        oracle.bury(now_ms)
        token = parse_claim_id(batch.claim_id)
        self._check_loss(batch, token)
        free, fresh = oracle.free(now_ms), oracle.fresh(now_ms)
        seqs = [record.seq for record in batch.records]
        assert len(seqs) == batch.count <= limit and seqs == sorted(seqs)
        if free or fresh:
            lowest = free[0].seq if free else fresh[0].seq
            assert seqs and seqs[0] == lowest, f"{seqs} does not begin with {lowest}"
        else:
            assert not seqs
        if seqs:
            self._check_records(batch, seqs, limit)
            for seq in seqs:
                oracle.handed_out(oracle.at(seq), consumer, token, batch.deadline)
            assert batch.deadline == now_ms + lease_ms
            assert {oracle.at(seq).deliveries for seq in seqs} == {batch.deliveries}
        if token:
            assert batch.claim_id not in {claim.claim_id for claim in self.claims}
            self.claims.append(batch)
        self.note()
        return batch

    def _check_records(self, batch: GroupBatch, seqs: list[int], limit: int) -> None:
        """Nobody else's, nothing left out, and as much as there is of its kind."""
        oracle, now_ms = self.oracle, self.now_ms
        ready = oracle.free(now_ms) + oracle.fresh(now_ms)
        kinds = {entry.seq: entry.deliveries for entry in ready}
        assert set(seqs) <= kinds.keys(), f"{seqs} are not all to be had"
        assert len({kinds[seq] for seq in seqs}) == 1
        inside = {each.seq for each in oracle.live(now_ms) if batch.first_seq <= each.seq <= batch.last_seq}
        assert inside == set(seqs), "a claim holds more than it delivers"
        # Where records are gone a claim may end: somebody may have acked them, or nobody ever got them.
        following = [each.seq for each in oracle.live(now_ms) if each.seq == seqs[-1] + 1]
        if len(seqs) < limit and following:
            assert kinds.get(following[0]) != kinds[seqs[0]] or not kinds[seqs[0]], "there was room for more"

    def _check_loss(self, batch: GroupBatch, token: int) -> None:
        untold = [entry.seq for entry in self.oracle.untold(self.now_ms)]
        tombstone = batch.tombstone
        if tombstone is None:
            assert not untold, f"{untold} were lost in silence"
            return
        told = range(tombstone.gap_from, tombstone.gap_to + 1)
        if not set(untold).intersection(told):
            self._check_deleted(told)
        else:
            assert untold[0] in told, f"{untold[0]} is told behind {told}"
        for seq in told:
            entry = self.oracle.at(seq)
            assert entry.end is not None, f"{seq} is not lost"
            if entry.end is End.LOST and not entry.acked:
                assert seq in untold, f"{seq} was told already"
                self.oracle.handed_out(entry, batch.consumer, token, batch.deadline)
        if not batch.count:
            assert (batch.first_seq, batch.last_seq) == (tombstone.gap_from, tombstone.gap_to)

    def _check_deleted(self, told: range) -> None:
        """What was deleted within a claim is told with it when the rest is lost: behind the floor the log does not know
        what was deleted before. It may be all that an ack of a part left."""
        assert told.stop <= self.rig.log().evict_floor
        for seq in told:
            entry = self.oracle.at(seq)
            assert entry.end is End.DELETED and entry.deliveries and not entry.acked, f"{seq} is not lost"

    def ack(self, upto_seq: int, consumer: str = "", from_seq: int = 0, claim_id: str | None = None) -> None:
        if not self.oracle.start_seq:
            return
        answer = self.step(AckGroup("t", "g", upto_seq, consumer=consumer, from_seq=from_seq, claim_id=claim_id))
        assert isinstance(answer, AckedGroup)
        self.oracle.ack(self.now_ms, upto_seq, from_seq, consumer, _token(claim_id))
        assert answer.committed_seq == self.oracle.committed(self.now_ms)
        self.note()

    def nack(
        self, upto_seq: int, consumer: str = "", from_seq: int = 0, claim_id: str | None = None, delay_ms: int = 0
    ) -> None:
        if self.oracle.start_seq:
            self.step(NackGroup("t", "g", upto_seq, 0, consumer, from_seq, claim_id, delay_ms))
            self.oracle.nack(self.now_ms, upto_seq, from_seq, consumer, _token(claim_id), delay_ms)
            self.note()

    def extend(self, upto_seq: int, consumer: str = "", from_seq: int = 0, claim_id: str | None = None) -> None:
        if self.oracle.start_seq:
            self.step(ExtendGroup("t", "g", upto_seq, 0, consumer, from_seq, claim_id, 300))
            self.oracle.extend(self.now_ms, upto_seq, from_seq, consumer, _token(claim_id), self.now_ms + 300)
            self.note()

    def reset(self, start: Start) -> None:
        answer = self.step(ResetGroup("t", "g", start))
        self.oracle.place(self._cursor(start))
        self.committed = self.oracle.committed(self.now_ms)
        assert answer.committed_seq == self.committed
        self.note()

    def drop(self) -> None:
        assert self.step(DropGroup("t", "g")).deleted == bool(self.oracle.start_seq)
        self.oracle.drop()
        self.note()

    # ---- comparing

    def check(self) -> None:
        compare(self.rig, self.oracle)
        if self.oracle.start_seq:
            committed = self.oracle.committed(self.now_ms)
            assert committed >= self.committed, "the committed seq went back"
            self.committed = committed

    def check_replay(self) -> None:
        """What is stored says the same as memory does."""
        compare(self.rig.replayed(), self.oracle)

    def check_crashes(self) -> None:
        """Whatever prefix of the facts survives is what was there after some step, and nothing else."""
        assert self.history is not None
        for fact_count, oracle in self.history:
            dead = GroupRig()
            dead.now_ms = self.now_ms
            dead.facts = self.rig.facts[:fact_count]
            compare(dead.replayed(), copy.deepcopy(oracle))


def _token(claim_id: str | None) -> int | None:
    return None if claim_id is None else parse_claim_id(claim_id)


def compare(rig: GroupRig, oracle: OracleGroup) -> None:
    live = oracle.live(rig.now_ms)
    if rig.machine.topics.get("t") is None:
        return
    assert rig.seqs(topic="t", limit=FAR) == [entry.seq for entry in live]
    group = rig.group()
    assert (group is not None) == bool(oracle.start_seq)
    if group is None:
        return
    now_ms = rig.now_ms
    assert group.start_seq == oracle.start_seq
    assert group.committed == oracle.committed(now_ms)
    assert group.dead_lettered == oracle.buried
    assert rig.log().holds.groups["g"] == group.committed + 1
    _compare_ranges(group, oracle, now_ms)
    lost = {entry.seq for entry in oracle.losses(now_ms)}
    told = {seq for loss in group.losses for seq in range(loss.first, loss.last + 1)}
    assert lost <= told and all(oracle.at(seq).end is not None for seq in told)
    for loss in group.losses:
        for seq in lost & set(range(loss.first, loss.last + 1)):
            entry = oracle.at(seq)
            assert (loss.token, loss.due_ms > now_ms) == (entry.token, not entry.is_waiting(now_ms))


def _compare_ranges(group: Group, oracle: OracleGroup, now_ms: int) -> None:
    next_seq = group.committed + 1
    for found in group.ranges:
        assert found.first == next_seq <= found.last, "ranges lie side by side"
        next_seq = found.last + 1
        for seq in range(found.first, found.last + 1):
            entry = oracle.at(seq)
            if entry.end is not None:
                continue
            assert found.state != LEAVING
            assert (found.state == ACKED) == entry.acked
            if not entry.acked:
                assert (found.state == CLAIMED) == entry.is_held(now_ms)
                assert (found.token, found.consumer) == (entry.token, entry.consumer)
                assert found.deliveries == entry.deliveries
    assert next_seq == group.next_seq
    for entry in oracle.own()[max(group.next_seq - oracle.start_seq, 0) :]:
        assert entry.end is not None or not (entry.deliveries or entry.acked)


__all__ = ["DEAD", "EARLIEST", "LATEST", "GroupRig", "Pair", "at_seq", "compare"]
