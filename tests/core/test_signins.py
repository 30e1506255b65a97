"""Sessions: begun, refreshed by number, ended when a number comes twice."""

from __future__ import annotations

import pytest

from tests.core.accountrig import GRACE_MS, LIFE_MS, AccountRig
from topics.accountmodel import Role
from topics.core.accountcommands import ChangeUser, EndSession
from topics.core.signins import Refresh
from topics.errors import SessionNotFound, Unauthorized
from topics.limits import SESSIONS_PER_USER_MAX


def rig_with_ada() -> AccountRig:
    rig = AccountRig()
    rig.user("ada")
    rig.session()
    return rig


def test_each_number_is_good_once() -> None:
    rig = rig_with_ada()
    for number in range(3):
        rig.now_ms += GRACE_MS + 1
        refreshed = rig.refresh(generation=number)
        assert refreshed.how is Refresh.ROTATED
        assert refreshed.session.expires_ms == rig.now_ms + LIFE_MS


def test_two_tabs_may_refresh_at_once() -> None:
    rig = rig_with_ada()
    rig.refresh(generation=0)
    rig.now_ms += GRACE_MS
    facts = len(rig.facts)
    assert rig.refresh(generation=0).how is Refresh.REPEATED
    assert len(rig.facts) == facts and rig.machine.accounts.sessions["s1"].generation == 1


@pytest.mark.parametrize("late", [True, False])
def test_an_old_number_ends_the_session(late: bool) -> None:
    rig = rig_with_ada()
    rig.refresh(generation=0)
    if late:
        rig.now_ms += GRACE_MS + 1
    else:
        rig.refresh(generation=1)
    assert rig.refresh(generation=0).how is Refresh.REUSED
    with pytest.raises(Unauthorized, match="sign in again"):
        rig.refresh(generation=1 if late else 2)
    assert rig.all_accounts(rig.replayed_machine()) == rig.all_accounts()


def test_a_session_is_over_in_time() -> None:
    rig = rig_with_ada()
    rig.now_ms += LIFE_MS
    with pytest.raises(Unauthorized):
        rig.refresh(generation=0)


def test_only_so_many_at_a_time_and_the_oldest_go() -> None:
    rig = AccountRig()
    rig.user("ada")
    for number in range(SESSIONS_PER_USER_MAX + 3):
        rig.now_ms += 1
        rig.session(f"s{number}")
    names = [session.session_id for session in rig.machine.accounts.sessions_of("ada")]
    assert names == [f"s{number}" for number in range(3, SESSIONS_PER_USER_MAX + 3)]
    rig.now_ms += LIFE_MS
    rig.session("fresh")
    assert list(rig.machine.accounts.sessions) == ["fresh"]
    assert rig.all_accounts(rig.replayed_machine()) == rig.all_accounts()


def test_who_is_disabled_or_has_no_password_cannot_begin() -> None:
    rig = AccountRig()
    rig.user("ada")
    rig.user("bob", Role.VIEWER, "")
    rig.user("eve", Role.VIEWER)
    rig.step(ChangeUser("eve", disabled=True))
    for name in ("bob", "eve"):
        with pytest.raises(Unauthorized):
            rig.session("s1", name)
    assert not rig.machine.accounts.sessions


def test_a_session_ends_once() -> None:
    rig = rig_with_ada()
    rig.step(EndSession("s1"))
    with pytest.raises(SessionNotFound):
        rig.step(EndSession("s1"))
