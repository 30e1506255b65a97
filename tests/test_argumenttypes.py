from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import pytest

import topics
from tests.client.rig import on_loop
from topics import settings
from topics.argumenttypes import check_of, checked, words
from topics.embedded import Embedded
from topics.errors import InvalidRequest

SURROGATE = "\ud800"


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Request:
    count: int
    names: Sequence[str] = ()
    records: Sequence[Mapping[str, Any]] = ()


class Named(msgspec.Struct):
    name: str
    count: int = 0


class Inner(msgspec.Struct):
    meta: dict[str, str] | None = None


@pytest.mark.parametrize(
    ("hint", "good"),
    [
        (int, [0, -1, 2**70]),
        (float, [1, 1.5]),
        (str, ["", "é"]),
        (bool, [True]),
        (bytes, [b""]),
        (int | None, [None, 1]),
        (str | tuple[str, str], ["a", ("a", "b"), ["a", "b"]]),
        (Sequence[int], [[], (1, 2), range(3)]),
        (tuple[int, ...], [(), (1,)]),
        (Mapping[str, int], [{}, {"a": 1}]),
        (Mapping[str, Any], [{}, {"a": object(), 1: 2}]),
        (Sequence[Mapping[str, object]], [[{}, 5]]),
        (Literal["a", "b"], ["b"]),
        (Colour, [Colour.RED]),
        (object, [5, None]),
        (Request, [Request(1, ["a"], [{"data": object()}])]),
        (Inner, [Inner({"a": "b"}), Inner()]),
    ],
)
def test_what_fits(hint: Any, good: Sequence[object]) -> None:
    for _ in range(2):
        for value in good:
            check_of(hint)(value, "it")


@pytest.mark.parametrize(
    ("hint", "wrong", "said"),
    [
        (int, 1.5, "it must be int, not float"),
        (int, 2.0, "it must be int, not float"),
        (int, True, "it must be int, not bool"),
        (float, True, "it must be float, not bool"),
        (float, "1", "it must be float, not str"),
        (str, 5, "it must be str, not int"),
        (str, b"x", "it must be str, not bytes"),
        (str, SURROGATE, "it must be str, not a str with a lone surrogate"),
        (bool, 1, "it must be bool, not int"),
        (bytes, "x", "it must be bytes, not str"),
        (int | None, "x", "it must be int or None, not str"),
        (str | tuple[str, str], ("a",), "it must be str or (str, str), not a tuple of 1"),
        (str | tuple[str, str], ["a", 1], "it[1] must be str, not int"),
        (Sequence[int], "123", "it must be a sequence of int, not str"),
        (Sequence[int], 5, "it must be a sequence of int, not int"),
        (Sequence[int], [1, 2, None], "it[2] must be int, not NoneType"),
        (Sequence[tuple[str, Inner]], [("a", Inner()), ("b", 5)], "it[1][1] must be Inner, not int"),
        (tuple[int, ...], (1, "x"), "it[1] must be int, not str"),
        (Mapping[str, int], [], "it must be a mapping of str to int, not a list of 0"),
        (Mapping[str, int], {"a": "b"}, "it.a must be int, not str"),
        (Mapping[str, int], {1: 1}, "a key of it must be str, not int"),
        (Mapping[str, object], 5, "it must be a mapping of str to anything, not int"),
        (Literal["a", "b"], "c", "it must be 'a' or 'b', not str"),
        (Colour, "red", "it must be Colour, not str"),
        (Request, Inner(), "it must be Request, not Inner"),
        (Request, Request(1.5), "count must be int, not float"),  # type: ignore[arg-type]
        (Request, Request(1, [SURROGATE]), "names[0] must be str, not a str with a lone surrogate"),
        (Inner, Inner({"a": 1}), "meta.a must be str, not int"),  # type: ignore[dict-item]
    ],
)
def test_what_does_not_fit_is_named(hint: Any, wrong: object, said: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_of(hint)(wrong, "it")
    assert refused.value.message == said
    name, _, rest = said.partition(" must be ")
    assert refused.value.detail == {"field": name, "expected": rest.partition(", not ")[0]}


def test_a_type_that_fits_once_does_not_let_others_in() -> None:
    """Whether a text can be stored is not said by its type."""
    check = check_of(Named)
    check(Named("a"), "it")
    for wrong in (Named(SURROGATE), Named("a", True), Named("a", 1.5)):  # type: ignore[arg-type]
        with pytest.raises(InvalidRequest):
            check(wrong, "it")


def test_methods_of_a_class_and_its_bases_are_checked_and_private_ones_are_not() -> None:
    class Base:
        def one(self, number: int, *, text: str = "") -> tuple[int, str]:
            return number, text

    @checked
    class Verbs(Base):
        async def two(self, numbers: Sequence[int]) -> int:
            return len(numbers)

        def _three(self, number: int) -> int:
            return number

    verbs = Verbs()
    assert verbs.one(1, text="a") == (1, "a") and verbs._three("x") == "x"  # type: ignore[arg-type, comparison-overlap]
    for call in (lambda: verbs.one("x"), lambda: verbs.one(1, text=5), lambda: verbs.two([""])):  # type: ignore[arg-type, list-item]
        with pytest.raises(InvalidRequest):
            call()
    assert Base().one("x") == ("x", ""), "another class is left as it is"  # type: ignore[arg-type]


# ---- every verb of an engine in this process

WRONG: Mapping[type, Sequence[object]] = {
    int: (1.5, 2.0, True, "5", float("nan")),
    str: (5, b"x", SURROGATE),
    bool: (1, "yes", None),
}
"""What would come as far as the log, or fail half-way, in place of a value of each type."""


def closed_verbs() -> Iterator[tuple[str, Any]]:
    """All of them, on an engine that is not open: what is refused is refused before anything else is looked at."""
    engine = Embedded(settings.build({"data_dir": "/nowhere"}))
    for verbs in (engine, engine.heaps):
        for name, verb in inspect.getmembers(type(verbs), inspect.isfunction):
            if not name.startswith("_"):
                yield f"{type(verbs).__name__}.{name}", verb.__get__(verbs)


@pytest.mark.parametrize("verb", [pytest.param(verb, id=name) for name, verb in closed_verbs()])
def test_every_verb_refuses_what_is_not_of_the_type_that_it_declares(verb: Callable[..., Any]) -> None:
    hints = get_type_hints(verb)
    names = list(inspect.signature(verb).parameters)
    good = {name: sample(hints[name]) for name in names}
    for name in names:
        for wrong, field in wrongs(hints[name], name):
            with pytest.raises(InvalidRequest) as refused:
                verb(**good | {name: wrong})
            assert refused.value.detail["field"].split("[")[0].split(".")[0] == field, (name, wrong)


def test_the_verbs_are_the_ones_that_there_are() -> None:
    named = [name for name, _ in closed_verbs()]
    assert len(named) == len(set(named)) and {"Embedded.write", "Embedded.claim", "EmbeddedHeaps.enqueue"} <= set(named)
    counted = sum(len(list(wrongs(hint, ""))) for _, verb in closed_verbs() for hint in hints_of(verb))
    assert counted > 500, "all numbers, texts and flags of all verbs"


def hints_of(verb: Callable[..., Any]) -> Sequence[Any]:
    return [hint for name, hint in get_type_hints(verb).items() if name != "return"]


def wrongs(hint: Any, name: str) -> Iterator[tuple[object, str]]:
    """Values that do not fit, and what is to be named."""
    if hint in WRONG:
        yield from ((each, name) for each in WRONG[hint])
    elif get_args(hint) and get_args(hint)[-1] is NoneType:
        yield from ((each, field) for each, field in wrongs(get_args(hint)[0], name) if each is not None)
    elif get_origin(hint) in (Sequence, tuple) and get_args(hint)[0] in WRONG:
        yield from (([each], name) for each in WRONG[get_args(hint)[0]])
    elif is_dataclass(hint) or (inspect.isclass(hint) and issubclass(hint, msgspec.Struct)):
        parts = get_type_hints(hint)
        good = {field: sample(part) for field, part in parts.items() if field in required(hint)}
        for field, part in parts.items():
            for each, named in wrongs(part, field):
                yield hint(**good | {field: each}), named


def required(kind: Any) -> set[str]:
    if is_dataclass(kind):
        return {field.name for field in fields(kind)}
    return {field.name for field in msgspec.structs.fields(kind)}


def sample(hint: Any) -> Any:
    """A value that fits."""
    origin, parts = get_origin(hint), get_args(hint)
    if parts and NoneType in parts:
        return None
    if origin is Literal:
        return parts[0]
    if origin in (Sequence, dict, Mapping) or (origin is tuple and parts[-1] is ...):
        return {} if origin in (dict, Mapping) else ()
    if origin is tuple:
        return tuple(map(sample, parts))
    if parts:
        return sample(parts[0])
    if hint in (object, Any):
        return None
    if issubclass(hint, Enum):
        return next(iter(hint))
    if is_dataclass(hint) or issubclass(hint, msgspec.Struct):
        return hint(**{name: sample(part) for name, part in get_type_hints(hint).items()})
    return hint("") if issubclass(hint, Exception) else hint()


def test_all_hints_have_words() -> None:
    for _, verb in closed_verbs():
        for hint in hints_of(verb):
            assert words(hint) and "typing" not in words(hint)


@on_loop
async def test_what_would_have_been_stored_is_refused_and_the_directory_opens_again(tmp_path: Path) -> None:
    async with topics.open(tmp_path / "data") as client:
        orders, jobs, messages = client.topic("orders"), client.queue("jobs"), client.heap("messages")
        await orders.write("a", idempotency_key="k")
        await jobs.create()
        await messages.create()
        calls: list[Callable[[], Any]] = [
            lambda: orders.delete(before_seq=1.5),  # type: ignore[arg-type]
            lambda: orders.write("b", idempotency_key=SURROGATE),
            lambda: orders.group("g").take(limit=1.5),  # type: ignore[arg-type]
            lambda: jobs.put("c", delay_ms=1.5),  # type: ignore[arg-type]
            lambda: jobs.put("c", not_before=True),
            lambda: messages.enqueue(b"d", priority=0.5),  # type: ignore[arg-type]
            lambda: messages.enqueue(b"d", delay_ms=1000.0),  # type: ignore[arg-type]
            lambda: messages.take(visibility_ms=float("inf")),  # type: ignore[arg-type]
        ]
        for call in calls:
            with pytest.raises(InvalidRequest):
                await call()
        assert [record.data for record in (await orders.diff()).records] == ["a"]
        assert (await orders.group("g").take(limit=1)).last_seq == 1, "nothing is left of the one that was refused"
    async with topics.open(tmp_path / "data") as client:
        assert (await client.topic("orders").state()).head_seq == 1
        assert (await client.queue("jobs").state()).count == 0
