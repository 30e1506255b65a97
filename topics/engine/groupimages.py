"""What a snapshot holds of consumer groups. To change an image: only add fields with a default at the end."""

from __future__ import annotations

import msgspec

from topics.core.group import Group
from topics.core.grouplosses import Loss, Losses
from topics.core.groupranges import Range, Ranges
from topics.core.log import Log
from topics.model import Reason


class RangeImage(msgspec.Struct, frozen=True, gc=False, array_like=True):
    first: int
    last: int
    state: int
    due_ms: int
    consumer: str
    token: int
    claim_first: int
    deliveries: int


class LossImage(msgspec.Struct, frozen=True, gc=False, array_like=True):
    first: int
    last: int
    reason: Reason
    due_ms: int
    consumer: str
    token: int


class GroupImage(msgspec.Struct, frozen=True, gc=False):
    group: str
    start_seq: int
    committed: int
    next_seq: int
    updated_ms: int
    paused: bool
    dead_lettered: int
    lost_count: int
    ranges: tuple[RangeImage, ...]
    losses: tuple[LossImage, ...]


def group_images(log: Log) -> tuple[GroupImage, ...]:
    return tuple(_image(group) for group in log.groups) if log.has_groups else ()


def restore_groups(log: Log, images: tuple[GroupImage, ...]) -> None:
    for image in images:
        group = Group(image.group, image.start_seq - 1, image.updated_ms)
        group.committed = image.committed
        group.paused = image.paused
        group.dead_lettered = image.dead_lettered
        group.lost_count = image.lost_count
        group.ranges = Ranges(image.next_seq, (Range(*msgspec.structs.astuple(each)) for each in image.ranges))
        group.losses = Losses(Loss(*msgspec.structs.astuple(each)) for each in image.losses)
        log.groups.add(group, log)


def _image(group: Group) -> GroupImage:
    return GroupImage(
        group.name,
        group.start_seq,
        group.committed,
        group.next_seq,
        group.updated_ms,
        group.paused,
        group.dead_lettered,
        group.lost_count,
        tuple(
            RangeImage(
                each.first,
                each.last,
                each.state,
                each.due_ms,
                each.consumer,
                each.token,
                each.claim_first,
                each.deliveries,
            )
            for each in group.ranges
        ),
        tuple(
            LossImage(each.first, each.last, each.reason, each.due_ms, each.consumer, each.token)
            for each in group.losses
        ),
    )
