from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from topics.accountmodel import Role
from topics.errors import InvalidRequest
from topics.limits import U64_MAX
from topics.wire.account import (
    PASSWORD_CHARS_MAX,
    PASSWORD_CHARS_MIN,
    KeyBody,
    LinkBody,
    PasswordChange,
    SetUp,
    SignIn,
    UserBody,
    UserChange,
    check_password,
    decode_key,
    decode_link,
    decode_password_change,
    decode_set_up,
    decode_sign_in,
    decode_user,
    decode_user_change,
)

GOOD = "correct horse"


def body(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def refused(decode: Callable[[bytes], object], text: bytes) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        decode(text)
    return caught.value


def test_each_body() -> None:
    assert decode_key(body(name="ci", scopes=["read"])) == KeyBody(name="ci", scopes=["read"])
    whole = body(name="ci", scopes=["read"], prefixes=["a:"], expires_ts=U64_MAX)
    assert decode_key(whole) == KeyBody(name="ci", scopes=["read"], prefixes=["a:"], expires_ts=U64_MAX)
    assert decode_user(body(email="a@b")) == UserBody(email="a@b", role=Role.VIEWER)
    assert decode_user(body(email="a@b", role="admin")) == UserBody(email="a@b", role=Role.ADMIN)
    assert decode_sign_in(body(email="a@b", password="x")) == SignIn(email="a@b", password="x")
    assert decode_set_up(body(token="t", password=GOOD)) == SetUp(token="t", password=GOOD)
    assert decode_link(body(token="t")) == LinkBody(token="t")
    changed = decode_password_change(body(current_password="old", new_password=GOOD))
    assert changed == PasswordChange(current_password="old", new_password=GOOD)


@pytest.mark.parametrize("change", [{"role": "admin"}, {"disabled": False}, {"new_link": True}])
def test_a_change_of_a_user_changes_something(change: dict[str, object]) -> None:
    assert decode_user_change(body(**change)) == UserChange(
        role=Role.ADMIN if "role" in change else None,
        disabled=False if "disabled" in change else None,
        new_link="new_link" in change,
    )


@pytest.mark.parametrize("text", [b"", b"{}", body(role=None, disabled=None, new_link=False)])
def test_a_change_of_nothing_is_refused(text: bytes) -> None:
    assert "the body changes nothing" in refused(decode_user_change, text).message


@pytest.mark.parametrize("expires_ts", [0, -1, U64_MAX + 1])
def test_a_key_ends_at_a_time_or_never(expires_ts: int) -> None:
    assert refused(decode_key, body(name="ci", scopes=[], expires_ts=expires_ts)).detail["field"] == "expires_ts"


@pytest.mark.parametrize(
    ("decode", "text", "field"),
    [
        (decode_key, b"", "name"),
        (decode_key, body(name="ci"), "scopes"),
        (decode_user, body(email=1), "email"),
        (decode_user, body(email="a", role="king"), "role"),
        (decode_sign_in, b'{"email":"a","password":"x","email":"b"}', "email"),
        (decode_link, b"{}", "token"),
        (decode_password_change, body(current_password="old", new_password="short"), "new_password"),
        (decode_set_up, body(token="t", password="short"), "password"),
    ],
)
def test_what_is_wrong_is_named(decode: Callable[[bytes], object], text: bytes, field: str) -> None:
    assert refused(decode, text).detail["field"] == field


def test_a_password_has_a_length_and_several_characters() -> None:
    for good in ("abcd" * 3, "abcdefghij"[:PASSWORD_CHARS_MIN], "abcd" * (PASSWORD_CHARS_MAX // 4)):
        assert check_password(good) == good
    for bad in ("abcdefghij"[: PASSWORD_CHARS_MIN - 1], "abcd" * (PASSWORD_CHARS_MAX // 4) + "e"):
        with pytest.raises(InvalidRequest, match=f"{PASSWORD_CHARS_MIN} to {PASSWORD_CHARS_MAX} characters") as caught:
            check_password(bad)
        assert bad not in caught.value.message
    with pytest.raises(InvalidRequest, match="new_password repeats the same few characters") as caught:
        check_password("abc" * 4, "new_password")
    assert "abc" not in caught.value.message
