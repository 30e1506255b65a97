"""Signed tokens: JSON Web Tokens with HMAC-SHA256, and the secrets that sign them.

One algorithm, and both ends are this server: that is forty lines of the standard library, and a library that can read
every kind of token would have to be told not to. A token of another algorithm is simply none.

The secrets are in `auth/signing.json` of the data directory, which only its owner may read. A new one is made every
thirty days, and signs from then on; the one before is good until every token that it signed has expired. The file is no
part of a backup: after a restore everybody signs in again.
"""

from __future__ import annotations

import hmac
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from typing import Final, TypeVar

import msgspec

from topics.clock import Clock
from topics.errors import Damaged
from topics.limits import DAY_MS
from topics.storage.fs import FileSystem

DIRECTORY: Final = "auth"
FILE: Final = "signing.json"
ROTATED_MS: Final = 30 * DAY_MS
SECRET_BYTES: Final = 32
TOKEN_CHARS_MAX: Final = 4096

T = TypeVar("T")


class Secret(msgspec.Struct, frozen=True):
    kid: str
    secret: str
    """In hex."""
    created_ms: int


class _Header(msgspec.Struct, frozen=True):
    alg: str
    kid: str
    typ: str = "JWT"


_secrets_decoder = msgspec.json.Decoder(list[Secret])
_header_decoder = msgspec.json.Decoder(_Header)


class Signing:
    def __init__(self, fs: FileSystem, data_dir: str, clock: Clock) -> None:
        self._fs = fs
        self._directory = f"{data_dir}/{DIRECTORY}"
        self._clock = clock
        self._secrets: list[Secret] = []

    @property
    def path(self) -> str:
        return f"{self._directory}/{FILE}"

    def load(self) -> None:
        """Read the secrets, and make one when there is none or the newest is old. Blocks: for a thread."""
        self._secrets = self._read()
        self.rotate()

    def rotate(self) -> bool:
        """Make a new secret when it is time; whether it was. Blocks only then."""
        now_ms = self._clock.now_ms()
        if self._secrets and now_ms - self._secrets[0].created_ms < ROTATED_MS:
            return False
        new = Secret(secrets.token_hex(4), secrets.token_hex(SECRET_BYTES), now_ms)
        # Tokens live for less than a rotation, so the one before is all that can have signed one that is still good.
        kept = [new, *self._secrets[:1]]
        self._write(kept)
        self._secrets = kept
        return True

    def _read(self) -> list[Secret]:
        if not self._fs.exists(self.path):
            return []
        file = self._fs.open(self.path, "read")
        try:
            text = file.read_at(0, file.size())
        finally:
            file.close()
        try:
            return _secrets_decoder.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Damaged(
                f"{self.path} does not hold signing secrets ({error}): remove it, and a new one is made; everybody "
                "has to sign in again then",
                file=self.path,
            ) from error

    def _write(self, kept: list[Secret]) -> None:
        self._fs.make_dir(self._directory)
        temporary = f"{self.path}.new"
        if self._fs.exists(temporary):
            self._fs.unlink(temporary)
        file = self._fs.open(temporary, "create")
        try:
            # Before there is anything in it.
            self._fs.restrict(temporary)
            file.write_at(0, [msgspec.json.encode(kept)])
            file.sync()
        finally:
            file.close()
        self._fs.rename(temporary, self.path)
        self._fs.sync_dir(self._directory)

    # ---- tokens

    def sign(self, claims: msgspec.Struct) -> str:
        secret = self._secrets[0]
        head = _encode(msgspec.json.encode(_Header("HS256", secret.kid)))
        text = f"{head}.{_encode(msgspec.json.encode(claims))}"
        return f"{text}.{_encode(_mac(secret, text))}"

    def read(self, token: str, decoder: msgspec.json.Decoder[T]) -> T | None:
        """What a token says, if we have signed it; whether it has expired is for the caller to see."""
        text, _, signature = token.rpartition(".")
        head, _, claims = text.partition(".")
        if not claims or len(token) > TOKEN_CHARS_MAX:
            return None
        try:
            header = _header_decoder.decode(_decode(head))
            secret = next((each for each in self._secrets if each.kid == header.kid), None)
            if header.alg != "HS256" or secret is None:
                return None
            if not hmac.compare_digest(_mac(secret, text), _decode(signature)):
                return None
            return decoder.decode(_decode(claims))
        except (NotBase64, msgspec.DecodeError, ValueError, RecursionError):
            return None

    def derive(self, purpose: str, content: str) -> str:
        """A text that follows from a content, and that nobody else can make."""
        return _encode(_mac(self._secrets[0], f"{purpose}:{content}"))

    def is_derived(self, text: str, purpose: str, content: str) -> bool:
        made = [_encode(_mac(secret, f"{purpose}:{content}")) for secret in self._secrets]
        return any(hmac.compare_digest(text.encode(), each.encode()) for each in made)


def _mac(secret: Secret, text: str) -> bytes:
    return hmac.digest(bytes.fromhex(secret.secret), text.encode(), "sha256")


def _encode(content: bytes) -> str:
    return urlsafe_b64encode(content).decode().rstrip("=")


def _decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))
