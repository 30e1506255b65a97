from __future__ import annotations

import ctypes

import pytest

from topics import freed


class _Library:
    def __init__(self) -> None:
        self.asked: list[int] = []

    def malloc_trim(self, pad: int) -> None:
        self.asked.append(pad)


def test_allocator_is_asked_to_give_memory_back(monkeypatch: pytest.MonkeyPatch) -> None:
    library = _Library()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    freed.give_back()
    assert library.asked == [0]


def test_allocator_without_such_a_call_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    freed.give_back()
