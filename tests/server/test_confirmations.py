from __future__ import annotations

import pytest

from topics.errors import ConfirmationNeeded
from topics.server.confirmations import LIFE_MS, Confirmations
from topics.testing import SimClock

MEANT = ("delete_heap", "jobs", 7, "key-1")


def token_of(confirmations: Confirmations) -> str:
    with pytest.raises(ConfirmationNeeded) as needed:
        confirmations.check(*MEANT, force=True, token="")
    token = needed.value.detail["confirmation_token"]
    assert isinstance(token, str)
    return token


def test_a_token_is_good_for_what_it_was_given_for_until_its_time_is_over() -> None:
    clock = SimClock()
    confirmations = Confirmations(clock)
    with pytest.raises(ConfirmationNeeded, match="force=true") as needed:
        confirmations.check(*MEANT, force=False, token="")
    assert "confirmation_token" not in needed.value.detail
    token = token_of(confirmations)
    confirmations.check(*MEANT, force=True, token=token)
    clock.advance(LIFE_MS - 1)
    confirmations.check(*MEANT, force=True, token=token)
    clock.advance(1)
    with pytest.raises(ConfirmationNeeded, match="expired"):
        confirmations.check(*MEANT, force=True, token=token)


@pytest.mark.parametrize(
    "other",
    [
        ("purge_heap", "jobs", 7, "key-1"),
        ("delete_heap", "job", 7, "key-1"),
        ("delete_heap", "jobs", 8, "key-1"),
        ("delete_heap", "jobs", 7, "key-2"),
    ],
)
def test_a_token_is_good_for_nothing_else(other: tuple[str, str, int, str]) -> None:
    confirmations = Confirmations(SimClock())
    with pytest.raises(ConfirmationNeeded, match="not one for"):
        confirmations.check(*other, force=True, token=token_of(confirmations))


@pytest.mark.parametrize("token", ["x", ".", "9999999999999.", "9999999999999." + "0" * 32, "٣.0", "-1.0", "1" * 99])
def test_a_token_that_nobody_gave_is_none(token: str) -> None:
    with pytest.raises(ConfirmationNeeded, match="not one for"):
        Confirmations(SimClock()).check(*MEANT, force=True, token=token)


def test_a_token_does_not_outlive_its_server() -> None:
    token = token_of(Confirmations(SimClock()))
    with pytest.raises(ConfirmationNeeded, match="before a restart"):
        Confirmations(SimClock()).check(*MEANT, force=True, token=token)


def test_its_expiry_is_part_of_what_is_signed() -> None:
    confirmations = Confirmations(SimClock())
    expiry, _, signature = token_of(confirmations).partition(".")
    with pytest.raises(ConfirmationNeeded, match="not one for"):
        confirmations.check(*MEANT, force=True, token=f"{int(expiry) + 1}.{signature}")
