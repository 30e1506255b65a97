"""Facts about routers as they are stored."""

from __future__ import annotations

import pytest

from topics.core.facts import encode, parse_log_fact, parse_meta_fact
from topics.core.routerfacts import CopiesLost, Forwarded, RouterGone, RouterPut
from topics.model import Reason
from topics.routermodel import Guarantee, RouterConfig

WHOLE = Forwarded(
    router=7,
    source_log_id=3,
    cursor=99,
    from_seq=90,
    chosen=b"\xff\x00",
    first_seq=12,
    count=8,
    ts=1700000000000,
    trimmed=2,
    drops_node=True,
    drops_tag=True,
    stamp="r/s/1/0/",
    hops=2,
    ceiling=500,
    floors=(4, 3, {Reason.CAP: 2}),
    records=b"block",
)


@pytest.mark.parametrize("fact", [WHOLE, Forwarded(1, 2, 3), CopiesLost(4, 9)])
def test_facts_of_a_destination_come_back(fact: Forwarded | CopiesLost) -> None:
    assert parse_log_fact(encode(fact)) == fact


def test_facts_of_the_meta_log_come_back() -> None:
    config = RouterConfig(source="a", dest="b", filter=("tag", "Eq", "x"), guarantee=Guarantee.EXACTLY_ONCE)
    for fact in (RouterPut("a->b", 7, config, 1700000000000, (4, 0)), RouterGone("a->b")):
        assert parse_meta_fact(encode(fact)) == fact


def test_a_fact_about_many_records_is_small() -> None:
    assert len(encode(Forwarded(7, 3, 5096, 1001, b"", 1, 4096, 1700000000000))) < 100


def test_what_is_stored_stays_readable() -> None:
    """Bytes as an earlier version wrote them."""
    stored = bytes.fromhex(
        "de0008a474797065a9666f72776172646564a6726f7574657207ad736f757263655f6c6f675f696403a6637572736f720aa866726f6d5f73657101"
        "a966697273745f73657105a5636f756e740aa27473cf0000018bcfe56800"
    )
    assert parse_log_fact(stored) == Forwarded(7, 3, 10, 1, b"", 5, 10, 1700000000000)
