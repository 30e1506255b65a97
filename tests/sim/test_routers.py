"""Random nets of routers, random crashes: order, no record twice, no loss that is not told, and an end to it."""

from __future__ import annotations

import random

import pytest

from tests.engine.rig import Rig
from tests.sim.routernet import Net, show
from topics.core.commands import Append, PutRouter
from topics.core.records import Records
from topics.engine.ticket import Ticket
from topics.routermodel import RouterConfig

SEEDS = 24
STEPS = 60


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_random_net_keeps_its_promises(seed: int) -> None:
    run(Net(seed))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_net_of_topics_of_all_classes(seed: int) -> None:
    run(Net(seed, volatile=True))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_net_whose_routers_begin_at_the_beginning(seed: int) -> None:
    run(Net(seed, backfill=True))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_net_with_rings_comes_to_rest(seed: int) -> None:
    run(Net(seed, cycles=True))


def run(net: Net) -> None:
    for _ in range(STEPS):
        net.act()
        net.rig.work()
        net.look()


NODES = tuple(f"node{number}" for number in range(5))


def mirrored(rig: Rig) -> None:
    """Five nodes, each with a topic of its own that has everything: a ring."""
    for name, successor in zip(NODES, (*NODES[1:], NODES[0]), strict=True):
        rig.driver.do(PutRouter(f"{name}->{successor}", RouterConfig(source=name, dest=successor, allow_cycle=True)))


def written(rig: Rig, name: str, number: int) -> Ticket:
    return rig.engine.submit(Append(name, Records.of([{"data": {"n": number}}], node=name)))


def others_of(rig: Rig, name: str) -> list[int]:
    """What a node is told that reads its topic without its own records."""
    page = rig.engine.read(name, limit=1000, nodes=(name,))
    assert page.tombstone is None
    return sorted(record.data["n"] for record in page.records)


def test_five_nodes_that_mirror_each_other() -> None:
    rig = Rig()
    mirrored(rig)
    for number in range(100):
        rig.driver.wait(written(rig, NODES[number % 5], number))
    rig.work()
    for at, name in enumerate(NODES):
        assert others_of(rig, name) == [number for number in range(100) if number % 5 != at]
        assert sorted(show(rig, name).numbers()) == list(range(100)), "each record is in each topic once"


@pytest.mark.parametrize("seed", range(6))
def test_five_nodes_that_die_all_the_time(seed: int) -> None:
    chance = random.Random(seed)
    rig = Rig()
    mirrored(rig)
    for number in range(60):
        rig.driver.wait(written(rig, NODES[number % 5], number))
        for _ in range(chance.randrange(3)):
            rig.engine.flush()
            rig.driver.wal.work()
            rig.engine.forwarding.pump()
        happens = chance.randrange(10)
        if happens == 0:
            rig.driver.checkpoint()
        elif happens <= 2:
            rig.kill()
        elif happens == 3:
            rig.stop()
    rig.work()
    for name in NODES:
        assert sorted(show(rig, name).numbers()) == list(range(60))
