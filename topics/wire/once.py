"""Keys given twice, in bodies that come all day: found by counting.

Looking at every object costs more than parsing all of them did. So each key is counted in the text: one that occurs as
often as there are objects that have it is not repeated. A body for which that does not hold is looked at exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any

import msgspec

from topics.wire import json

Walk = Callable[[json.Pairs], Sequence[tuple[str, json.Pairs]]]


def refuse_repeated(
    body: bytes, walk: Walk, *kinds: Sequence[msgspec.Struct], data: Callable[[], Iterable[bytes]] = tuple
) -> None:
    """Refuse a key given twice in the objects that `walk` names.

    `kinds` are the same objects as they were parsed, those of one type together, and `data` is what in the body is the
    client's own JSON.
    """
    if not _counts_add_up(body, kinds, data) or (b"\\" in body and json.spelled_in_escapes(body)):
        json.refuse_repeated_keys(body, walk)


def root_of(root: json.Pairs) -> list[tuple[str, json.Pairs]]:
    """For a body that has no other object of ours."""
    return [("", root)]


def _counts_add_up(body: bytes, kinds: Sequence[Sequence[msgspec.Struct]], data: Callable[[], Iterable[bytes]]) -> bool:
    left: dict[bytes, int] = {}
    for objects in kinds:
        for key, get, default in _keys(type(objects[0])) if objects else ():
            count = left[key] if key in left else body.count(key)
            if count:
                left[key] = count - len(objects) + list(map(get, objects)).count(default)
    if not any(left.values()):
        return True
    inside = b",".join(data())
    return all(count == inside.count(key) for key, count in left.items())


@cache
def _keys(kind: type[msgspec.Struct]) -> list[tuple[bytes, Callable[[Any], Any], Any]]:
    """The keys of a type as they stand in a body, how an object is asked for each, and the answer without one."""
    fields = msgspec.structs.fields(kind)
    return [(b'"%b"' % field.encode_name.encode(), attrgetter(field.name), field.default) for field in fields]
