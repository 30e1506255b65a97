"""Facts about accounts as they are stored."""

from __future__ import annotations

import pytest

from topics.core.accountfacts import (
    KeyGone,
    KeyPut,
    KeysUsed,
    SessionGone,
    SessionPut,
    UserGone,
    UserPut,
)
from topics.core.facts import MetaFact, encode, parse_meta_fact


@pytest.mark.parametrize(
    "fact",
    [
        UserPut("u1", "ada@example.org", "admin", "$argon2id$x", 1, 2, True, b"\x00\xff", 3, 4),
        UserGone("u1"),
        KeyPut("k1", "ci", "$argon2id$y", ("read", "write"), ("tenant:",), "ada@example.org", 1, 2, 3, 4),
        KeyGone("k1"),
        KeysUsed(("k1", "k2"), 7),
        SessionPut("s1", "u1", 3, 1, 2, 9, "10.0.0.1", "browser"),
        SessionGone("s1"),
    ],
)
def test_facts_come_back(fact: MetaFact) -> None:
    assert parse_meta_fact(encode(fact)) == fact


def test_what_an_older_one_lacks_has_its_default() -> None:
    assert parse_meta_fact(encode(UserPut("u1", "a@b", "viewer", "", 1, 1))) == UserPut("u1", "a@b", "viewer", "", 1, 1)
