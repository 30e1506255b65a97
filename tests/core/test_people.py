"""Users: made, invited, changed, removed; and never without an admin."""

from __future__ import annotations

import pytest

from tests.core.accountrig import HASH, AccountRig
from topics.accountmodel import Role, UserState, UserStatus
from topics.core import people
from topics.core.accountcommands import AddUser, ChangeUser, DropUser, UseLink
from topics.core.commands import Command
from topics.errors import InvalidRequest, LastAdmin, NameTaken, Throttled, TopicsError, Unauthorized, UserNotFound

LINK = b"l" * 32


def test_an_email_is_one_whatever_its_case() -> None:
    rig = AccountRig()
    state = rig.step(AddUser("u1", "  Ada@Example.ORG ", Role.ADMIN, HASH)).reply
    assert isinstance(state, UserState)
    assert (state.email, state.status) == ("ada@example.org", UserStatus.ACTIVE)
    with pytest.raises(NameTaken, match="topics user passwd"):
        rig.step(AddUser("u2", "ADA@example.org", Role.VIEWER, HASH))


@pytest.mark.parametrize(
    "email", ["", "ada", "@example.org", "a b@example.org", "<b>@x.org", "a@b@c", "x" * 300 + "@y"]
)
def test_what_is_no_email_is_refused(email: str) -> None:
    rig = AccountRig()
    with pytest.raises(InvalidRequest) as refused:
        rig.step(AddUser("u1", email, Role.VIEWER))
    assert refused.value.detail["field"] == "email"
    assert rig.all_accounts() == ({}, {}, {})


def test_only_the_first_user_sets_a_server_up() -> None:
    rig = AccountRig()
    rig.user("ada", first=True)
    with pytest.raises(Unauthorized, match="set up already"):
        rig.user("eve", first=True)


def test_a_link_is_good_once() -> None:
    rig = AccountRig()
    rig.user("ada")
    invited = rig.user("bob", Role.VIEWER, "", link_hash=LINK, link_expires_ms=rig.now_ms + 1000)
    assert (invited.status, invited.link_expires_ts) == (UserStatus.INVITED, rig.now_ms + 1000)
    joined = rig.step(UseLink(LINK, HASH)).reply
    assert isinstance(joined, UserState) and joined.status is UserStatus.ACTIVE and joined.link_expires_ts is None
    with pytest.raises(Unauthorized, match="used already"):
        rig.step(UseLink(LINK, HASH))


@pytest.mark.parametrize("spoiled", ["late", "disabled", "replaced"])
def test_a_link_that_is_no_good_any_more(spoiled: str) -> None:
    rig = AccountRig()
    rig.user("ada")
    rig.user("bob", Role.VIEWER, "", link_hash=LINK, link_expires_ms=rig.now_ms + 1000)
    if spoiled == "late":
        rig.now_ms += 1000
    elif spoiled == "disabled":
        rig.step(ChangeUser("bob", disabled=True))
    else:
        rig.step(ChangeUser("bob", link_hash=b"m" * 32, link_expires_ms=rig.now_ms + 1000))
    before = rig.all_accounts()
    with pytest.raises(Unauthorized):
        rig.step(UseLink(LINK, HASH))
    assert rig.all_accounts() == before


@pytest.mark.parametrize(
    "command",
    [DropUser("ada"), ChangeUser("ada", role=Role.OPERATOR), ChangeUser("ada", disabled=True)],
)
def test_the_last_admin_stays(command: Command) -> None:
    rig = AccountRig()
    rig.user("ada")
    rig.user("bob", Role.VIEWER)
    rig.user("invited", Role.ADMIN, "", link_hash=LINK, link_expires_ms=rig.now_ms + 1)
    before = rig.all_accounts()
    with pytest.raises(LastAdmin, match="make another admin first"):
        rig.step(command)
    assert rig.all_accounts() == before
    rig.user("eve", Role.ADMIN)
    rig.step(command)


@pytest.mark.parametrize("change", ["password", "link", "disabled"])
def test_a_change_of_who_it_is_ends_sessions(change: str) -> None:
    rig = AccountRig()
    rig.user("ada")
    rig.user("bob", Role.OPERATOR)
    for name in ("s1", "s2"):
        rig.session(name, "bob")
    rig.session("other", "ada")
    commands = {
        "password": ChangeUser("bob", password_hash=HASH + "x", spared_session_id="s2"),
        "link": ChangeUser("bob", link_hash=LINK, link_expires_ms=rig.now_ms + 1),
        "disabled": ChangeUser("bob", disabled=True),
    }
    rig.step(commands[change])
    assert set(rig.machine.accounts.sessions) == ({"s2", "other"} if change == "password" else {"other"})


def test_another_role_ends_no_session() -> None:
    rig = AccountRig()
    rig.user("ada")
    rig.user("bob", Role.OPERATOR)
    rig.session("s1", "bob")
    rig.step(ChangeUser("bob", role=Role.VIEWER))
    assert "s1" in rig.machine.accounts.sessions


def test_who_is_removed_is_gone_with_all_sessions() -> None:
    rig = AccountRig()
    rig.user("ada")
    rig.user("bob", Role.VIEWER)
    rig.session("s1", "bob")
    rig.step(DropUser("bob@example.org"))
    assert set(rig.machine.accounts.users) == {"ada"} and not rig.machine.accounts.sessions
    with pytest.raises(UserNotFound, match="topics user ls"):
        rig.step(DropUser("bob"))


def test_a_replay_gives_the_same() -> None:
    rig = AccountRig()
    rig.user("ada")
    rig.user("bob", Role.VIEWER, "", link_hash=LINK, link_expires_ms=rig.now_ms + 5)
    rig.step(UseLink(LINK, HASH))
    rig.session("s1", "bob")
    rig.step(ChangeUser("bob", disabled=True))
    rig.user("eve", Role.ADMIN)
    rig.step(DropUser("ada"))
    assert rig.all_accounts(rig.replayed_machine()) == rig.all_accounts()


def test_rights_that_change_are_told_by_the_version() -> None:
    rig = AccountRig()
    rig.user("ada")
    rig.user("bob", Role.OPERATOR)
    before = rig.machine.accounts.version
    rig.step(ChangeUser("bob", role=Role.VIEWER))
    assert rig.machine.accounts.version > before


def test_nobody_may_be_made_from_nothing() -> None:
    rig = AccountRig()
    for command in (ChangeUser("nobody", disabled=True), DropUser("nobody")):
        with pytest.raises(TopicsError):
            rig.step(command)
    assert rig.facts == []


def test_there_are_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(people, "USERS_MAX", 1)
    rig = AccountRig()
    rig.user("ada")
    before = rig.all_accounts()
    with pytest.raises(Throttled, match="there are 1 users") as refused:
        rig.user("bob", Role.VIEWER)
    assert refused.value.detail["limit"] == "users"
    assert rig.all_accounts() == before


def test_the_last_admin_may_have_another_password() -> None:
    rig = AccountRig()
    rig.user("ada")
    rig.session("s1")
    changed = rig.step(ChangeUser("ada", password_hash=HASH + "x")).reply
    assert isinstance(changed, UserState) and changed.status is UserStatus.ACTIVE
    assert rig.machine.accounts.users["ada"].password_hash == HASH + "x" and not rig.machine.accounts.sessions
