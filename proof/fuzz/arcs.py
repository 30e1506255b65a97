"""Arcs: which line of a decoder was run after which, as `sys.settrace` tells it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import Any, Final

from proof.fuzz.target import Run

_LINE_BITS: Final = 16
_PLACE_BITS: Final = 32


class Arcs:
    """Sees the lines of some files only, so that all else runs at nearly its own speed."""

    def __init__(self, files: Iterable[str]) -> None:
        self._files = frozenset(files)
        self._bases: dict[CodeType, int] = {}
        self._found: set[int] = set()
        self._last = 0

    def of(self, run: Run, data: bytes) -> frozenset[int]:
        """The arcs of one run; what it raises is left to whoever runs it again."""
        self._found = set()
        self._last = 0
        before = sys.gettrace()
        sys.settrace(self._enter)
        try:
            run(data)
        except Exception:
            self._found.add(self._last << _PLACE_BITS)
        finally:
            sys.settrace(before)
        return frozenset(self._found)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if code not in self._bases:
            known = code.co_filename in self._files
            self._bases[code] = len(self._bases) + 1 << _LINE_BITS if known else 0
        return self._step if self._bases[code] else None

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            here = self._bases[frame.f_code] + frame.f_lineno
            self._found.add(self._last << _PLACE_BITS | here)
            self._last = here
        return self._step
