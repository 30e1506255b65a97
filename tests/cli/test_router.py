from __future__ import annotations

import pytest

from tests.cli.rig import Command
from tests.cli.terminal import Terminal
from tests.e2e.served import Served


def forwarded(topics: Command, dest: str, count: int) -> list[object]:
    """The data of a topic's records, as soon as there are so many."""
    found: list[object] = []
    while len(found) < count:
        said = topics("read", dest)
        found = [line["data"] for line in said.lines] if said.code == 0 else []
    return found


def test_a_router_is_put_listed_shown_and_removed(topics: Command, topic: str) -> None:
    source, dest = f"{topic}-a", f"{topic}-b"
    (made,) = topics.good("router", "put", source, dest)
    name = f"{source}->{dest}"
    assert (made["created"], made["router"], made["source"], made["dest"]) == (True, name, source, dest)
    (again,) = topics.good("router", "put", source, dest, "--tag", "x")
    assert (again["created"], again["filter"]) == (False, ["tag", "Eq", "x"])
    topics.good("write", source, "1", "--tag", "y")
    topics.good("write", source, "2", "--tag", "x")
    assert forwarded(topics, dest, 1) == [2]
    (listed,) = topics.good("router", "ls", "--source", source)
    assert (listed["router"], listed["forwarded_total"], listed["lag_records"], listed["stalled"]) == (name, 1, 0, None)
    assert topics.good("router", "ls", name) == topics.good("router", "ls", "--dest", dest) == [listed]
    assert topics.good("router", "show", name) == [listed]
    assert topics.good("router", "rm", name) == [{"router": name, "deleted": True}]
    said = topics("router", "show", name)
    assert said.code == 3 and "`topics router ls` lists those there are" in said.err


def test_every_option_of_put(topics: Command, topic: str) -> None:
    topics.good("write", f"{topic}-a", "1", "--tag", "public:1", "--node", "n")
    flags = ["--name", f"{topic}>one", "--tag-prefix", "public:", "--guarantee", "exactly_once", "--backfill"]
    flags += ["--allow-cycle", "--no-preserve-node", "--no-preserve-tag"]
    (made,) = topics.good("router", "put", f"{topic}-a", f"{topic}-b", *flags)
    assert made["router"] == f"{topic}>one" and made["filter"] == ["tag", "Glob", "public:*"]
    assert made["guarantee"] == "exactly_once" and made["backfill"] and made["allow_cycle"]
    assert not made["preserve_node"] and not made["preserve_tag"]
    assert forwarded(topics, f"{topic}-b", 1) == [1]
    (copy,) = topics.good("read", f"{topic}-b")
    assert "$tag" not in copy and "$node" not in copy and "_topics_router" in copy["meta"]
    said = topics("router", "put", f"{topic}-a", f"{topic}-c", "--no-create-dest")
    assert said.code == 3 and f"{topic}-c" in said.err
    said = topics("router", "put", f"{topic}-a", f"{topic}-c", "--tag", "a", "--tag-prefix", "b")
    assert said.code == 2 and "both name tags" in said.err


def test_for_people(topics: Command, topic: str) -> None:
    source, dest = f"{topic}-a", f"{topic}-b"
    said = topics("router", "put", source, dest, "--no-json")
    assert (said.code, said.out.strip()) == (0, f"{source}->{dest} is created")
    said = topics("router", "put", source, dest, "--no-json")
    assert said.out.strip() == f"{source}->{dest} was there and has this config now"
    table = topics("router", "ls", topic, "--no-json").out
    assert "forwards" in table and "waiting" in table and source in table
    shown = topics("router", "show", f"{source}->{dest}", "--no-json").out
    assert "all records" in shown and "at_least_once" in shown and "cursors" in shown
    assert "no routers yet" in topics("router", "ls", "none-of-these", "--no-json").out
    assert topics("router", "rm", f"{source}->{dest}", "--no-json").out.strip() == f"removed {source}->{dest}"
    assert topics("router", "rm").code == 2


def test_a_router_that_is_held_up_says_so(topics: Command, topic: str) -> None:
    source, dest = f"{topic}-a", f"{topic}-b"
    if "--dir" in topics.where:
        pytest.skip("a directory is open only while a command runs: nothing is forwarded between them")
    topics.good("topic", "create", dest, "--cap-records", "1", "--discard", "reject")
    topics.good("router", "put", source, dest)
    topics.good("write", source, "1", "2")
    state = {"stalled": None}
    while state["stalled"] is None:
        (state,) = topics.good("router", "ls", source)
    said = topics("router", "ls", source, "--no-json")
    assert "stalled: " in said.out
    found = {line["check"]: line for line in topics("doctor").lines}
    assert found["routers"]["verdict"] == "warning" and "topics router ls" in found["routers"]["advice"]
    (stat,) = topics.good("stat")
    assert stat["routers"] >= 1 and stat["routers_stalled"] >= 1
    topics.good("router", "rm", f"{source}->{dest}")


def test_removing_a_topic_tells_of_its_routers(topics: Command, topic: str) -> None:
    source, dest = f"{topic}-a", f"{topic}-b"
    topics.good("router", "put", source, dest)
    (gone,) = topics.good("topic", "rm", dest, "--yes")
    assert gone == {"topic": dest, "deleted": True, "routers": [f"{source}->{dest}"]}
    topics.good("router", "put", source, dest)
    said = topics("topic", "rm", dest, "--yes", "--no-json")
    assert f"with its router {source}->{dest}" in said.out


def test_a_cycle_is_refused_with_what_to_do(topics: Command, topic: str) -> None:
    first, second = f"{topic}-a", f"{topic}-b"
    topics.good("router", "put", first, second)
    said = topics("router", "put", second, first)
    assert said.code == 4 and "router_cycle" in said.err and "--allow-cycle" in said.err


def test_a_person_is_asked_before_a_router_goes(capfd: pytest.CaptureFixture[str], server: Served, topic: str) -> None:
    topics = Command(capfd, ["--url", server.url])
    source, dest = f"{topic}-a", f"{topic}-b"
    name = f"{source}->{dest}"
    topics.good("router", "put", source, dest)
    with Terminal("router", "rm", name, *topics.where, columns=300) as terminal:
        terminal.wait_for(f"Remove {name}, which has 0 records still to forward? [y/N] ")
        terminal.press(b"n\n")
        assert terminal.end() == 1
    with Terminal("topic", "rm", dest, *topics.where, columns=300) as terminal:
        terminal.wait_for(f"Remove {dest} with 0 records (0 B) for good, with its router {name}? [y/N] ")
        terminal.press(b"y\n")
        assert terminal.end() == 0
    assert topics.good("router", "ls", topic) == []
