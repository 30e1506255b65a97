"""The bound of the spine: whatever comes and goes, what is taken is within the best K of all that is there."""

from __future__ import annotations

import random
from bisect import insort

import pytest

from topics.core.spine import Candidate, Exposure, Spine, fan_out


class Cluster:
    """Partitions that show themselves to a spine by the rule, and everything that is in them."""

    def __init__(self, top_k: int, partitions: int) -> None:
        self.fan_out = fan_out(top_k, partitions)
        self.parts: list[list[Candidate]] = [[] for _ in range(partitions)]
        self.exposures = [Exposure(self.fan_out) for _ in range(partitions)]
        self.spine = Spine()
        self.shown_count = 0
        for partition in range(partitions):
            self.show(partition)

    def show(self, partition: int) -> None:
        candidates = self.parts[partition][: self.fan_out]
        self.spine.show(partition, candidates)
        self.exposures[partition].shown(candidates)
        self.shown_count += 1

    def come(self, candidate: Candidate) -> None:
        insort(self.parts[candidate.partition], candidate)
        if self.exposures[candidate.partition].came(candidate):
            self.show(candidate.partition)

    def take(self) -> tuple[Candidate, int] | None:
        """What is taken, and how many are better, and one."""
        best = self.spine.take()
        if best is None:
            return None
        better = sum(other < best for part in self.parts for other in part)
        self.parts[best.partition].remove(best)
        if self.exposures[best.partition].took():
            self.show(best.partition)
        return best, better + 1


CASES = [(1, 1), (1, 7), (2, 5), (5, 5), (8, 3), (12, 4), (13, 4), (100, 1), (100, 20), (40, 64)]


@pytest.mark.parametrize(("top_k", "partitions"), CASES)
@pytest.mark.parametrize("seed", range(6))
def test_what_is_taken_is_within_the_bound(top_k: int, partitions: int, seed: int) -> None:
    chance = random.Random(f"{top_k}/{partitions}/{seed}")
    cluster = Cluster(top_k, partitions)
    taken, come = 0, 0
    for seq in range(1, 1500):
        # Now and then the best so far come last, which is the worst there is for a spine.
        rank = -seq if chance.random() < 0.5 else chance.randrange(-500, 500)
        cluster.come(Candidate(rank, seq, chance.randrange(partitions), seq))
        come += 1
        if chance.random() < 0.45:
            found = cluster.take()
            assert found is not None, "something is there, and the spine does not know"
            assert found[1] <= top_k
            taken += 1
    while (found := cluster.take()) is not None:
        assert found[1] <= top_k
        taken += 1
    assert taken == come


def test_the_bound_is_reached() -> None:
    """It is no larger than it has to be: somebody can be made to wait behind K - 1 better ones."""
    top_k, partitions = 12, 4
    cluster = Cluster(top_k, partitions)
    seq = 0
    for partition in range(partitions):
        for _ in range(cluster.fan_out):
            seq += 1
            cluster.come(Candidate(1000 + seq, seq, partition, seq))
    for partition in range(partitions):
        cluster.show(partition)
    for partition in range(partitions):
        for _ in range(cluster.fan_out - 1):
            seq += 1
            cluster.come(Candidate(-seq, seq, partition, seq))
    found = cluster.take()
    assert found is not None and found[1] == partitions * (cluster.fan_out - 1) + 1


@pytest.mark.parametrize(("top_k", "partitions"), CASES)
def test_the_fan_out_keeps_the_bound(top_k: int, partitions: int) -> None:
    shown = fan_out(top_k, partitions)
    assert shown >= 1 and partitions * (shown - 1) <= top_k - 1
    assert partitions * shown >= top_k, "a smaller one would ask more often than it has to"


def test_a_larger_fan_out_shows_less_often() -> None:
    counts = []
    for top_k in (1, 100):
        cluster = Cluster(top_k, 4)
        chance = random.Random(1)
        for seq in range(2000):
            cluster.come(Candidate(chance.randrange(1000), seq, seq % 4, seq))
            if seq % 2:
                cluster.take()
        counts.append(cluster.shown_count)
    assert counts[1] < counts[0] / 3


def test_with_a_fan_out_of_one_the_order_is_exact() -> None:
    cluster = Cluster(1, 6)
    chance = random.Random(2)
    everything = [Candidate(chance.randrange(50), seq, seq % 6, seq) for seq in range(500)]
    for candidate in everything:
        cluster.come(candidate)
    assert [cluster.take() for _ in everything] == [(candidate, 1) for candidate in sorted(everything)]
