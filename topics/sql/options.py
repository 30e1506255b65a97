"""Options of a topic as SQL says them, and as the config fields that they are."""

from __future__ import annotations

from topics.core import config as configs
from topics.errors import InvalidRequest
from topics.limits import SECOND_MS
from topics.sql.place import Place
from topics.sql.reader import Reader
from topics.sql.statements import Value

OPTIONS = ("retention_seconds", "retention_max_bytes", *configs.FIELDS)
"""Every option, ours first."""


class Options:
    """Config fields as they were said, each once, and where."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.found: dict[str, tuple[Value, Place]] = {}

    def add(self, field: str, value: Value, place: Place) -> None:
        if field in self.found:
            raise self._reader.fail(f"{field} is said twice", place)
        self.found[field] = (value, place)

    def add_named(self, name: str, place: Place, value: Value, value_place: Place) -> None:
        """An option under its name in SQL."""
        name = name.lower()
        if name not in OPTIONS:
            raise self._reader.fail(f"{name} is no option of a topic", place, sorted(OPTIONS))
        if name == "retention_seconds":
            if not isinstance(value, int | float) or isinstance(value, bool) or value < 0:
                raise self._reader.fail("retention_seconds is a number from 0", value_place, ["a number from 0"])
            self.add("ttl_ms", round(value * SECOND_MS), value_place)
        else:
            self.add("cap_bytes" if name == "retention_max_bytes" else name, value, value_place)


def check_fields(reader: Reader, topic: str, options: Options) -> tuple[tuple[str, Value], ...]:
    """The fields, when a topic may have such values; an error stands where the value does."""
    for field, (value, place) in options.found.items():
        try:
            configs.build(topic, {field: value})
        except InvalidRequest as error:
            expected = error.detail.get("expected")
            raise reader.fail(error.message, place, [str(expected)] if expected else []) from error
    return tuple((field, value) for field, (value, _) in options.found.items())
