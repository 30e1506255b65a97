"""Accounts in JSON: the bodies that make and change users, managed keys and sessions."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from topics.accountmodel import Role
from topics.errors import InvalidRequest
from topics.limits import U64_MAX
from topics.wire import json

PASSWORD_CHARS_MIN: Final = 10
PASSWORD_CHARS_MAX: Final = 256
PASSWORD_EXPECTED: Final = f"{PASSWORD_CHARS_MIN} to {PASSWORD_CHARS_MAX} characters"


class KeyBody(msgspec.Struct, kw_only=True):
    name: str
    scopes: list[str]
    prefixes: list[str] | None = None
    expires_ts: int | None = None


class UserBody(msgspec.Struct, kw_only=True):
    email: str
    role: Role = Role.VIEWER


class UserChange(msgspec.Struct, kw_only=True):
    role: Role | None = None
    disabled: bool | None = None
    new_link: bool = False


class SignIn(msgspec.Struct, kw_only=True):
    email: str
    password: str


class SetUp(msgspec.Struct, kw_only=True):
    token: str
    password: str
    email: str | None = None


class LinkBody(msgspec.Struct, kw_only=True):
    token: str


class PasswordChange(msgspec.Struct, kw_only=True):
    current_password: str
    new_password: str


T = TypeVar("T", bound=msgspec.Struct)


def _decode(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    parsed = json.decode(decoder, body or b"{}")
    json.refuse_repeated_keys(body or b"{}", lambda root: [("", root)])
    return parsed


_key = msgspec.json.Decoder(KeyBody)
_user = msgspec.json.Decoder(UserBody)
_change = msgspec.json.Decoder(UserChange)
_sign_in = msgspec.json.Decoder(SignIn)
_set_up = msgspec.json.Decoder(SetUp)
_link = msgspec.json.Decoder(LinkBody)
_password = msgspec.json.Decoder(PasswordChange)


def decode_key(body: bytes) -> KeyBody:
    wanted = _decode(_key, body)
    if wanted.expires_ts is not None and not 0 < wanted.expires_ts <= U64_MAX:
        expected = "milliseconds since 1970, or nothing for a key without an end"
        raise InvalidRequest(f"expires_ts must be {expected}", field="expires_ts", expected=expected)
    return wanted


def decode_user(body: bytes) -> UserBody:
    return _decode(_user, body)


def decode_user_change(body: bytes) -> UserChange:
    wanted = _decode(_change, body)
    if wanted.role is None and wanted.disabled is None and not wanted.new_link:
        expected = "role, disabled or new_link"
        raise InvalidRequest(f"the body changes nothing: expected {expected}", expected=expected)
    return wanted


def decode_sign_in(body: bytes) -> SignIn:
    return _decode(_sign_in, body)


def decode_set_up(body: bytes) -> SetUp:
    wanted = _decode(_set_up, body)
    check_password(wanted.password)
    return wanted


def decode_link(body: bytes) -> LinkBody:
    return _decode(_link, body)


def decode_password_change(body: bytes) -> PasswordChange:
    wanted = _decode(_password, body)
    check_password(wanted.new_password, "new_password")
    return wanted


def check_password(text: str, field: str = "password") -> str:
    """A password somebody chooses. It is never quoted."""
    if not PASSWORD_CHARS_MIN <= len(text) <= PASSWORD_CHARS_MAX:
        raise InvalidRequest(
            f"{field} must have {PASSWORD_EXPECTED}, and has {len(text)}", field=field, expected=PASSWORD_EXPECTED
        )
    if len(set(text)) < 4:
        raise InvalidRequest(
            f"{field} repeats the same few characters", field=field, expected="at least 4 different characters"
        )
    return text
