"""Signed tokens, and the file of the secrets that sign them."""

from __future__ import annotations

import msgspec
import pytest

from topics.errors import Damaged
from topics.server.signing import ROTATED_MS, Signing
from topics.testing import FakeDisk, SimClock


class Claims(msgspec.Struct):
    sid: str


DECODER = msgspec.json.Decoder(Claims)


def signing(fs: FakeDisk, clock: SimClock) -> Signing:
    made = Signing(fs, "/d", clock)
    made.load()
    return made


def test_what_was_signed_is_read_again_also_after_a_restart() -> None:
    fs, clock = FakeDisk(), SimClock()
    token = signing(fs, clock).sign(Claims("s1"))
    assert signing(fs, clock).read(token, DECODER) == Claims("s1")
    assert signing(FakeDisk(), clock).read(token, DECODER) is None


@pytest.mark.parametrize("at", range(0, 150, 11))
def test_every_letter_counts(at: int) -> None:
    made = signing(FakeDisk(), SimClock())
    token = made.sign(Claims("s1"))
    at %= len(token) - 1
    changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
    assert made.read(changed, DECODER) is None


@pytest.mark.parametrize("token", ["", ".", "..", "a.b", "a.b.c", "ü.ü.ü", "x" * 5000, "eyJhbGciOiJub25lIn0.e30."])
def test_what_is_no_token_is_none(token: str) -> None:
    assert signing(FakeDisk(), SimClock()).read(token, DECODER) is None


def test_the_secret_before_is_good_for_one_more_rotation() -> None:
    fs, clock = FakeDisk(), SimClock()
    made = signing(fs, clock)
    token, csrf = made.sign(Claims("s1")), made.derive("csrf", "s1")
    assert not made.rotate()
    clock.advance(ROTATED_MS)
    assert made.rotate()
    assert made.sign(Claims("s1")) != token and made.read(token, DECODER) == Claims("s1")
    assert made.is_derived(csrf, "csrf", "s1") and not made.is_derived(csrf, "csrf", "s2")
    clock.advance(ROTATED_MS)
    again = signing(fs, clock)
    assert again.read(token, DECODER) is None and not again.is_derived(csrf, "csrf", "s1")


@pytest.mark.parametrize("content", [b"garbage", b'[{"kid":"\xff"}]', b"[" * 5_000])
def test_a_file_that_holds_something_else_is_said(content: bytes) -> None:
    fs, clock = FakeDisk(), SimClock()
    made = signing(fs, clock)
    file = fs.open(made.path, "write")
    file.write_at(0, [content])
    file.close()
    with pytest.raises(Damaged, match="remove it"):
        signing(fs, clock)


def test_what_a_crash_left_of_a_new_file_is_in_nobodys_way() -> None:
    fs, clock = FakeDisk(), SimClock()
    token = signing(fs, clock).sign(Claims("s1"))
    left = fs.open("/d/auth/signing.json.new", "create")
    left.write_at(0, [b"half a secr"])
    left.close()
    clock.advance(ROTATED_MS)
    after = signing(fs, clock)
    assert after.read(token, DECODER) == Claims("s1") and not fs.exists("/d/auth/signing.json.new")
    assert signing(fs, clock).read(after.sign(Claims("s2")), DECODER) == Claims("s2")
