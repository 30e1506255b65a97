"""Whether the arguments of a verb are what its annotations say.

A server learns the types of a request when it reads its JSON, and refuses what has another. An engine in this process
is handed Python's values as they are: without this, 1.5 as a number of milliseconds would come as far as the log, and
no start would read it back.

Each annotation becomes a check once, when its class is made; a call costs a few comparisons of types. What is declared
as `object` or `Any`, and mappings of names to such (records, the fields of configs), is looked at where it is read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache, wraps
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from topics.errors import InvalidRequest

C = TypeVar("C")
Check = Callable[[Any, str], None]
"""Raises `InvalidRequest` when a value does not fit; the text is what to call it."""

SELF = "self"


def checked(verbs: type[C]) -> type[C]:
    """All public methods of the class, also those of its bases, refuse arguments of other types than they declare."""
    for name, method in inspect.getmembers(verbs, inspect.isfunction):
        if not name.startswith("_"):
            setattr(verbs, name, _checking(method))
    return verbs


def _checking(method: Callable[..., Any]) -> Callable[..., Any]:
    hints = get_type_hints(method)
    names = [name for name in inspect.signature(method).parameters if name != SELF]
    checks = {name: check_of(hints[name]) for name in names}

    @wraps(method)
    def call(self: Any, *values: Any, **named: Any) -> Any:
        for (name, check), value in zip(checks.items(), values, strict=False):
            check(value, name)
        for name, value in named.items():
            checks[name](value, name)
        return method(self, *values, **named)

    return call


@cache
def check_of(hint: Any) -> Check:
    """The check of an annotation."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint in _PLAIN:
        return _one(_PLAIN[hint], words(hint))
    if hint in (object, Any):
        return _anything
    if origin is Literal:
        return _one(lambda value: value in parts, words(hint))
    if origin in (Union, UnionType):
        return _any_of(hint, parts)
    if origin in (Sequence, list) or (origin is tuple and parts[-1] is ...):
        return _each(words(hint), None if _is_open(parts[0]) else check_of(parts[0]))
    if origin is tuple:
        return _all_of(words(hint), [check_of(part) for part in parts])
    if origin in (Mapping, dict):
        return _items(words(hint), *([] if _is_open(hint) else map(check_of, parts)))
    if is_dataclass(hint) or issubclass(hint, msgspec.Struct):
        return _fields(hint)
    return _one(lambda value: isinstance(value, hint), words(hint))


def _is_open(hint: Any) -> bool:
    """Whether it is left to whoever reads it what is in it."""
    return hint in (object, Any) or (get_origin(hint) is Mapping and _is_open(get_args(hint)[1]))


def _at_once(hint: Any) -> frozenset[type]:
    """Types whose values fit, whatever they are: most arguments are of these, and need no call."""
    if get_origin(hint) in (Union, UnionType):
        return frozenset().union(*map(_at_once, get_args(hint)))
    return frozenset({hint} & {int, bool, bytes, NoneType})


def words(hint: Any) -> str:
    """An annotation as a reader is told it."""
    origin, parts = get_origin(hint), get_args(hint)
    if hint is NoneType:
        return "None"
    if origin is Literal:
        return " or ".join(map(repr, parts))
    if origin in (Union, UnionType):
        return " or ".join(map(words, parts))
    if origin in (Sequence, list) or (origin is tuple and parts[-1] is ...):
        return f"a sequence of {words(parts[0])}"
    if origin is tuple:
        return f"({', '.join(map(words, parts))})"
    if origin in (Mapping, dict):
        return f"a mapping of {words(parts[0])} to {words(parts[1])}"
    return "anything" if hint in (object, Any) else str(hint.__name__)


# ---- what a value may be


def _is_whole(value: object) -> bool:
    return type(value) is int or (isinstance(value, int) and not isinstance(value, bool))


def _is_number(value: object) -> bool:
    return isinstance(value, float) or _is_whole(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and (value.isascii() or _encodes(value))


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


_PLAIN: dict[Any, Callable[[object], bool]] = {
    int: _is_whole,
    float: _is_number,
    str: _is_text,
    bool: lambda value: isinstance(value, bool),
    bytes: lambda value: isinstance(value, bytes),
    NoneType: lambda value: value is None,
}


# ---- checks


def _anything(value: object, name: str) -> None:
    pass


def _one(fits: Callable[[object], bool], expected: str) -> Check:
    def check(value: object, name: str) -> None:
        if not fits(value):
            raise _refusal(value, name, expected)

    return check


def _any_of(hint: Any, parts: Sequence[Any]) -> Check:
    others = [part for part in parts if part is not NoneType]
    checks, expected, may_be_none = [check_of(part) for part in others], words(hint), len(others) < len(parts)

    def check(value: object, name: str) -> None:
        if value is None and may_be_none:
            return
        for one in checks:
            try:
                one(value, name)
            except InvalidRequest as refusal:
                if refusal.detail["field"] != name:
                    raise  # Something within it: that says more.
            else:
                return
        raise _refusal(value, name, expected)

    return check


def _each(expected: str, part: Check | None) -> Check:
    def check(value: object, name: str) -> None:
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise _refusal(value, name, expected)
        if part is None:
            return
        try:
            for each in value:
                part(each, name)
        except InvalidRequest:
            _name_place(value, [part] * len(value), name)

    return check


def _all_of(expected: str, parts: Sequence[Check]) -> Check:
    def check(value: object, name: str) -> None:
        if not isinstance(value, tuple | list) or len(value) != len(parts):
            raise _refusal(value, name, expected)
        try:
            for part, each in zip(parts, value, strict=True):
                part(each, name)
        except InvalidRequest:
            _name_place(value, parts, name)

    return check


def _name_place(value: Sequence[object], parts: Sequence[Check], name: str) -> NoReturn:
    """Places are named for what is refused only: there may be thousands that are not."""
    for place, (part, each) in enumerate(zip(parts, value, strict=True)):
        part(each, f"{name}[{place}]")
    raise AssertionError("what was refused is refused again")


def _items(expected: str, key: Check | None = None, part: Check | None = None) -> Check:
    def check(value: object, name: str) -> None:
        if not isinstance(value, Mapping):
            raise _refusal(value, name, expected)
        if key is not None and part is not None:
            for each, content in value.items():
                key(each, f"a key of {name}")
                part(content, f"{name}.{each}")

    return check


def _fields(kind: type) -> Check:
    """A request: its fields are called what they are called, without the name of the request."""
    hints = get_type_hints(kind)
    parts = [(name, _at_once(hint), check_of(hint)) for name, hint in hints.items()]
    get = attrgetter(*hints)
    contents = get if len(hints) > 1 else lambda value: (get(value),)
    known: set[tuple[type, ...]] = set()
    """Types that need no look at the values. Most requests of a kind are alike."""

    def check(value: object, name: str) -> None:
        if not isinstance(value, kind):
            raise _refusal(value, name, kind.__name__)
        found = contents(value)
        types = tuple(map(type, found))
        if types in known:
            return
        for (field, _, part), each in zip(parts, found, strict=True):
            part(each, field)
        if all(each in at_once for (_, at_once, _), each in zip(parts, types, strict=True)):
            known.add(types)

    return check


def _refusal(value: object, name: str, expected: str) -> InvalidRequest:
    found = type(value).__name__
    if isinstance(value, str):
        found = found if _is_text(value) else "a str with a lone surrogate"
    elif isinstance(value, tuple | list):
        found = f"a {found} of {len(value)}"
    return InvalidRequest(f"{name} must be {expected}, not {found}", field=name, expected=expected)
