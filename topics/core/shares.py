"""Dividing what there is among those who ask: evenly, nobody more than wanted, in one pass."""

from __future__ import annotations

from collections.abc import Sequence


def shares(available: int, wanted: Sequence[int]) -> list[int]:
    """How much each gets. Who wants less than an even part leaves the rest to the others.

    What cannot be divided evenly goes, one each, to those who want most; among those, to who came first.
    """
    if available >= sum(wanted):
        return list(wanted)
    if len(wanted) == 1:
        return [available]
    given = [0] * len(wanted)
    asking = sorted(range(len(wanted)), key=lambda at: wanted[at])
    place = 0
    # There is less than is wanted, so somebody wants more than an even part.
    while wanted[at := asking[place]] <= available // (len(asking) - place):
        given[at] = wanted[at]
        available -= wanted[at]
        place += 1
    unsated = sorted(asking[place:], key=lambda at: (-wanted[at], at))
    even, rest = divmod(available, len(unsated))
    for place, at in enumerate(unsated):
        given[at] = even + (place < rest)
    return given


def cut(items: Sequence[int], counts: Sequence[int]) -> list[list[int]]:
    """To each the next ones, as if they had asked one after the other; each part ascending."""
    parts = []
    at = 0
    for count in counts:
        parts.append(sorted(items[at : at + count]))
        at += count
    return parts


def deal(items: Sequence[int], counts: Sequence[int]) -> list[list[int]]:
    """The items one by one in turn, until everybody has as many as they get; each part ascending."""
    hands: list[list[int]] = [[] for _ in counts]
    at = 0
    while at < len(items):
        before = at
        for hand, count in zip(hands, counts, strict=True):
            if len(hand) < count and at < len(items):
                hand.append(items[at])
                at += 1
        if at == before:
            break
    for hand in hands:
        hand.sort()
    return hands
