"""A body that has nothing to say: an object, or none at all. What an object says is not looked at."""

from __future__ import annotations

import msgspec

from topics.wire import json


class _Nothing(msgspec.Struct):
    pass


_nothings = msgspec.json.Decoder(_Nothing)


def check_nothing(body: bytes) -> None:
    if body:
        json.decode(_nothings, body)
