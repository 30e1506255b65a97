"""Bugs of disks and clocks, to be planted: see `test_planted.py`."""

from __future__ import annotations

import pytest

from topics.storage.walfile import FileHeader
from topics.storage.witness import ShardWitness, Testimony


def boot_id_alone_proves_that_nothing_is_lost(patch: pytest.MonkeyPatch) -> None:
    def about(self: ShardWitness, header: FileHeader, end: int, sealed: bool) -> Testimony:
        return Testimony.KEPT

    patch.setattr(ShardWitness, "about", about)
