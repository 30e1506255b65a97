"""Options of a topic as SQL says them, and as the config fields that they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from topics.core import config as configs
from topics.errors import InvalidRequest
from topics.limits import SECOND_MS
from topics.model import TopicType
from topics.sql.place import Place
from topics.sql.reader import Reader
from topics.sql.statements import Value

OPTIONS = ("retention_seconds", "retention_max_bytes", *configs.FIELDS)
"""Every option, ours first."""


RETENTION: Final = ("retention_seconds", "retention_max_bytes", "ttl_ms", "cap_bytes", "cap_records")
"""The options that say how long records are kept."""

NO_RETENTION: Final[tuple[tuple[str, Value], ...]] = (("ttl_ms", 0), ("cap_bytes", 0), ("cap_records", 0))
"""Records are kept until they are deleted."""

_NONE: Final[dict[str, Value]] = {
    field: getattr(configs.DEFAULT, field)
    for field in configs.DEFAULT.__struct_fields__
    if getattr(configs.DEFAULT, field) == () or str(getattr(configs.DEFAULT, field)) == "0"
}
"""NULL is this value of a field whose default is no limit, or an empty list."""


class Options:
    """Config fields as they were said, each once, and where."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.found: dict[str, tuple[Value, Place]] = {}
        self.names: dict[str, str] = {}
        """By field, the option that was written, where that is another word."""

    def add(self, field: str, value: Value, place: Place) -> None:
        if field in self.found:
            raise self._reader.fail(f"{field} is said twice", place)
        self.found[field] = (value, place)

    def add_named(
        self, name: str, place: Place, value: Value, value_place: Place, known: Sequence[str] = OPTIONS
    ) -> None:
        """An option under its name in SQL. NULL takes a limit away."""
        name = name.lower()
        if name not in known:
            what = "a topic" if known is OPTIONS else "retention"
            raise self._reader.fail(f"{name} is no option of {what}", place, sorted(known))
        field = {"retention_seconds": "ttl_ms", "retention_max_bytes": "cap_bytes"}.get(name, name)
        self.names[field] = name
        if value is None and field in _NONE:
            self.add(field, _NONE[field], value_place)
        elif name == "retention_seconds":
            if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
                raise self._reader.fail("retention_seconds is a number from 0", value_place, ["a number from 0"])
            self.add(field, round(value * SECOND_MS), value_place)
        else:
            self.add(field, value, value_place)


def check_new(reader: Reader, topic: str, options: Options) -> tuple[tuple[str, Value], ...]:
    """The fields of a topic that is to be made, when one of its type may have such values."""
    said = options.found.get("type")
    if said is not None:
        _check(reader, topic, "type", said, [said[0]], "type")
    return _checked(reader, topic, options, [TopicType.LOG.value if said is None else said[0]])


def check_changes(reader: Reader, topic: str, options: Options) -> tuple[tuple[str, Value], ...]:
    """The fields, when a topic of any type may have such values: which it is, only the engine knows."""
    return _checked(reader, topic, options, [kind.value for kind in TopicType])


def _checked(reader: Reader, topic: str, options: Options, types: Sequence[Value]) -> tuple[tuple[str, Value], ...]:
    for field, found in options.found.items():
        _check(reader, topic, field, found, types, options.names.get(field, field))
    return tuple((field, value) for field, (value, _) in options.found.items())


def _check(
    reader: Reader, topic: str, field: str, found: tuple[Value, Place], types: Sequence[Value], name: str
) -> None:
    """One of these types takes the field; else the first one says why not, where the value stands."""
    value, place = found
    refused: InvalidRequest | None = None
    for kind in types:
        try:
            configs.build(topic, {"type": kind, field: value})
        except InvalidRequest as error:
            refused = refused or error
        else:
            return
    assert refused is not None, "there is a type"
    expected = refused.detail.get("expected")
    message = refused.message
    if expected and message.startswith(f"{field} must be "):
        # In the words of the statement: its name of the option, and SQL's word for no value.
        shown = "NULL" if value is None else value
        message = f"{name} must be {expected}, not {shown}"
    raise reader.fail(message, place, [str(expected)] if expected else []) from refused
