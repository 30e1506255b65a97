"""Managed keys: made, used, revoked, forgotten."""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.accountrig import AccountRig
from topics.accountmodel import KeyStatus
from topics.core import managedkeys
from topics.core.accountcommands import NoteKeysUsed, RevokeKey
from topics.core.accountview import key_state
from topics.errors import InvalidRequest, KeyNotFound, Throttled
from topics.limits import MANAGED_KEY_FORGOTTEN_MS


def test_a_key_has_its_scopes_in_order_and_once() -> None:
    state = AccountRig().key(scopes=("write", "read", "write"), prefixes=("b", "a", "b"))
    assert (state.scopes, state.prefixes, state.status) == (("read", "write"), ("b", "a"), KeyStatus.ACTIVE)


@pytest.mark.parametrize(
    "field, fields",
    [
        ("name", {"name": "  "}),
        ("name", {"name": "x" * 101}),
        ("name", {"name": "a\nb"}),
        ("scopes", {"scopes": ()}),
        ("scopes", {"scopes": ("read", "root")}),
        ("prefixes", {"prefixes": ("",)}),
        ("prefixes", {"prefixes": ("_x",)}),
        ("prefixes", {"prefixes": tuple(f"p{number}" for number in range(65))}),
        ("expires_ts", {"expires_ms": 5}),
    ],
)
def test_what_is_no_key_is_refused(field: str, fields: dict[str, Any]) -> None:
    rig = AccountRig()
    with pytest.raises(InvalidRequest) as refused:
        rig.key(**fields)
    assert refused.value.detail["field"] == field
    assert rig.facts == [] and rig.all_accounts() == ({}, {}, {})


def test_a_key_ends_by_time_or_by_word() -> None:
    rig = AccountRig()
    rig.key("k1", expires_ms=rig.now_ms + 10)
    rig.key("k2")
    keys = rig.machine.accounts.keys
    assert key_state(keys["k1"], rig.now_ms + 9).status is KeyStatus.ACTIVE
    assert key_state(keys["k1"], rig.now_ms + 10).status is KeyStatus.EXPIRED
    version = rig.machine.accounts.version
    rig.step(RevokeKey("k2"))
    assert key_state(keys["k2"], rig.now_ms).status is KeyStatus.REVOKED and rig.machine.accounts.version > version
    facts = len(rig.facts)
    rig.step(RevokeKey("k2"))
    assert len(rig.facts) == facts
    with pytest.raises(KeyNotFound, match="topics key ls"):
        rig.step(RevokeKey("k3"))


def test_dead_keys_are_forgotten_when_the_next_is_made() -> None:
    rig = AccountRig()
    rig.key("k1")
    rig.key("k2", expires_ms=rig.now_ms + 1)
    rig.step(RevokeKey("k1"))
    rig.now_ms += MANAGED_KEY_FORGOTTEN_MS
    rig.key("k3")
    assert set(rig.machine.accounts.keys) == {"k2", "k3"}
    rig.now_ms += 1
    rig.key("k4")
    assert set(rig.machine.accounts.keys) == {"k3", "k4"}
    assert rig.all_accounts(rig.replayed_machine()) == rig.all_accounts()


def test_use_is_one_fact_for_many_keys_and_takes_no_right_away() -> None:
    rig = AccountRig()
    rig.key("k1")
    rig.key("k2")
    facts, version = len(rig.facts), rig.machine.accounts.version
    rig.now_ms += 60_000
    rig.step(NoteKeysUsed(("k1", "k2", "gone")))
    assert len(rig.facts) == facts + 1 and rig.machine.accounts.version == version
    assert {key.used_ms for key in rig.machine.accounts.keys.values()} == {rig.now_ms}
    rig.step(NoteKeysUsed(("gone",)))
    assert len(rig.facts) == facts + 1
    assert rig.all_accounts(rig.replayed_machine()) == rig.all_accounts()


def test_there_are_only_so_many_and_those_to_be_forgotten_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managedkeys, "MANAGED_KEYS_MAX", 2)
    rig = AccountRig()
    rig.key("k1")
    rig.key("k2")
    rig.step(RevokeKey("k1"))
    before, facts = rig.all_accounts(), len(rig.facts)
    with pytest.raises(Throttled, match="revoke some") as refused:
        rig.key("k3")
    assert (refused.value.detail["limit"], refused.value.detail["max"]) == ("managed_keys", 2)
    assert rig.all_accounts() == before and len(rig.facts) == facts
    rig.now_ms += MANAGED_KEY_FORGOTTEN_MS
    rig.key("k3")
    assert set(rig.machine.accounts.keys) == {"k2", "k3"}
