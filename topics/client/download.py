"""A download: the bytes of a large answer as they come, and about how many there will be."""

from __future__ import annotations

from collections.abc import AsyncIterator


class Download:
    def __init__(self, parts: AsyncIterator[bytes], total_bytes: int) -> None:
        self._parts = parts
        self.total_bytes = total_bytes
        """As the server said before the first of them; 0 when it did not."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._parts
