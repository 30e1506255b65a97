"""Accounts out of facts, also where others of them are lost."""

from __future__ import annotations

from tests.core.accountrig import AccountRig
from topics.core.accountfacts import KeyGone, KeysUsed, SessionGone, UserGone
from topics.core.accounts import KEYS, SESSIONS, USERS
from topics.core.accountview import session_state


def test_facts_about_what_is_not_there_make_nothing() -> None:
    """A repair may have lost what they were about."""
    rig = AccountRig()
    rig.user("ada")
    rig.key("k1")
    rig.session("s1")
    before = rig.all_accounts()
    accounts = rig.machine.accounts
    for fact in (KeysUsed(("lost",), rig.now_ms + 1), KeyGone("lost"), SessionGone("lost"), UserGone("lost")):
        accounts.apply(fact)
    assert rig.all_accounts() == before
    assert [session.session_id for session in accounts.sessions_of("ada")] == ["s1"]


def test_a_use_is_noted_of_the_keys_that_are_there() -> None:
    rig = AccountRig()
    rig.key("k1")
    rig.machine.accounts.apply(KeysUsed(("lost", "k1"), rig.now_ms + 7))
    assert {name: key.used_ms for name, key in rig.machine.accounts.keys.items()} == {"k1": rig.now_ms + 7}


def test_a_snapshot_holds_what_is_there_and_drops_what_went() -> None:
    rig = AccountRig()
    rig.user("ada")
    rig.key("k1")
    rig.session("s1")
    accounts = rig.machine.accounts
    assert set(accounts.all_keys()) == accounts.changed == {USERS + b"ada", KEYS + b"k1", SESSIONS + b"s1"}
    accounts.apply(SessionGone("s1"))
    assert accounts.image(USERS + b"ada") == accounts.users["ada"]
    assert accounts.image(KEYS + b"k1") == accounts.keys["k1"]
    assert accounts.image(SESSIONS + b"s1") is None


def test_a_session_as_it_is_shown() -> None:
    rig = AccountRig()
    rig.user("ada")
    session = rig.session("s1")
    shown = session_state(rig.machine.accounts, session)
    assert (shown.id, shown.user_id, shown.email) == ("s1", "ada", "ada@example.org")
    assert (shown.created_ts, shown.refreshed_ts, shown.expires_ts) == (rig.now_ms, rig.now_ms, session.expires_ms)
    assert (shown.address, shown.agent) == ("10.0.0.1", "browser")
    rig.machine.accounts.apply(UserGone("ada"))
    assert session_state(rig.machine.accounts, session).email == ""
