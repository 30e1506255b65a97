"""The routers that there are, and the graph they make."""

from __future__ import annotations

from topics.core.match import Match
from topics.core.router import Router, Routers
from topics.routermodel import RouterConfig


def router(source: str, dest: str, name: str = "", number: int = 1) -> Router:
    return Router.of(name or f"{source}->{dest}", number, RouterConfig(source=source, dest=dest), 0, (0,))


def routers(*pairs: str) -> Routers:
    found = Routers()
    for pair in pairs:
        found.put(router(*pair))
    return found


def test_a_filter_is_a_match() -> None:
    config = RouterConfig(source="a", dest="b", filter=("tag", "Glob", "x:*"))
    assert Router.of("r", 1, config, 0, (0,)).match == Match(b"x:", prefix=True)
    assert router("a", "b").match is None


def test_what_is_put_is_found_at_both_ends_and_what_is_removed_is_not() -> None:
    found = routers("ab", "ac", "cd")
    assert [each.name for each in found.out_of("a")] == ["a->b", "a->c"]
    assert [each.name for each in found.into("d")] == ["c->d"]
    assert found.touching("c") == ["a->c", "c->d"] and found.touching("x") == []
    assert found.remove("a->c") is not None and found.remove("a->c") is None
    assert found.touching("c") == ["c->d"] and found.get("a->c") is None and len(found) == 2


def test_a_router_that_is_put_again_leaves_its_old_topics() -> None:
    found = routers("ab")
    found.put(router("c", "d", "a->b", 2))
    assert found.touching("a") == [] == found.touching("b") and found.touching("d") == ["a->b"]
    assert len(found) == 1


def test_changes_are_noted() -> None:
    found = routers("ab")
    before, found.changed = found.version, set()
    found.remove("a->b")
    assert found.changed == {"a->b"} and found.version > before


def test_pages_are_in_order_of_names() -> None:
    found = routers("cd", "ab", "ac", "xy")

    def page(**chosen: str) -> list[str]:
        return [each.name for each in found.page(chosen.pop("after", ""), chosen.pop("prefix", ""), 2, **chosen)]

    assert page() == ["a->b", "a->c"] and page(after="a->c") == ["c->d", "x->y"] and page(after="x->y") == []
    assert (
        page(prefix="a") == ["a->b", "a->c"] and page(prefix="a", after="a->b") == ["a->c"] and page(prefix="b") == []
    )
    assert page(source="a") == ["a->b", "a->c"] and page(source="a", dest="c") == ["a->c"]
    assert page(dest="y") == ["x->y"] and page(dest="x") == [] == page(source="q")


def test_a_way_back_is_a_cycle() -> None:
    found = routers("ab", "bc")
    assert found.cycle_of("c", "a") == ["c", "a", "b", "c"]
    assert found.cycle_of("b", "a") == ["b", "a", "b"]
    assert found.cycle_of("a", "d") is None and found.cycle_of("d", "a") is None
    assert found.cycle_of("b", "a", without="a->b") is None


def test_the_ring_that_a_router_is_part_of() -> None:
    found = routers("ab", "bc", "ca", "cd", "de")
    sizes = {each.name: found.ring_of(each) for each in found}
    assert sizes == {"a->b": 3, "b->c": 3, "c->a": 3, "c->d": 0, "d->e": 0}


def test_a_chain_that_leads_into_a_ring_from_it_ends_the_walk() -> None:
    found = routers("ab", "ba", "bc", "cd")
    assert found.cycle_of("d", "x") is None
