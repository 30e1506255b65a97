"""The name of a lease on the wire: `lease_` and its token, in hexadecimal digits."""

from __future__ import annotations

LEASE_ID_PREFIX = "lease_"
TOKEN_DIGITS_MAX = 16


def lease_id(token: int) -> str:
    return f"{LEASE_ID_PREFIX}{token:x}"


def parse_lease_id(text: str) -> int:
    """The token of a lease id; 0, which is no lease's, when it is none."""
    try:
        token = int(text[len(LEASE_ID_PREFIX) :][:TOKEN_DIGITS_MAX], 16)
    except ValueError:
        return 0
    return token if token > 0 and lease_id(token) == text else 0
