"""A place in the tokens of one statement, and what may stand there.

The grammar asks for words; whatever was asked for at a place and not found is what an error there says was expected.
Parameters are taken here: a value stands where `?` does, and is never text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from topics.core.names import check_group, check_pipeline, check_table, check_topic
from topics.errors import InvalidRequest, InvalidSql
from topics.limits import U64_MAX
from topics.sql.place import Place, wrong
from topics.sql.statements import Scalar
from topics.sql.tokens import Kind, Token

END = "the end"
PARAMETER = "a parameter"


class Parameters:
    """The values that were sent along. Each `?` takes the next one; `$n` names one, and the two do not mix."""

    def __init__(self, values: Sequence[object]) -> None:
        self._values = values
        self._next = 0
        self._numbered: set[int] = set()
        self.last = 0
        """The index of the value that was taken last."""

    def take(self, token: Token) -> object:
        """The value that a parameter stands for; `LookupError` says why there is none."""
        if token.text:
            if self._next:
                raise LookupError("parameters are all ? or all numbered")
            number = int(token.text)
            if not 1 <= number <= len(self._values):
                raise LookupError(f"there is no parameter {number}: {len(self._values)} were given")
            self._numbered.add(number)
            self.last = number - 1
            return self._values[self.last]
        if self._numbered:
            raise LookupError("parameters are all ? or all numbered")
        if self._next == len(self._values):
            raise LookupError(f"there is no value for this parameter: {len(self._values)} were given")
        self.last = self._next
        self._next += 1
        return self._values[self.last]

    def check_used(self) -> None:
        """A value that nothing asks for is a slip of the pen."""
        used = max(len(self._numbered), self._next)
        if used != len(self._values):
            raise InvalidSql(
                f"{len(self._values)} parameters were given, and the statements use {used}",
                given=len(self._values),
                used=used,
            )


class Reader:
    def __init__(
        self,
        text: str,
        tokens: Sequence[Token],
        number: int,
        parameters: Parameters,
        tables: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.text = text
        self.tokens = tokens
        self.number = number
        """Which statement this is, from 1."""
        self.parameters = parameters
        self.tables: Mapping[str, Sequence[str]] = {} if tables is None else tables
        """The columns of registered tables, as far as somebody has told them."""
        self._at = 0
        self._wanted: list[str] = []
        """What was asked for at this place."""

    # ---- where it stands

    @property
    def done(self) -> bool:
        return self._at == len(self.tokens)

    @property
    def position(self) -> int:
        """How many tokens are taken."""
        return self._at

    @property
    def token(self) -> Token | None:
        return None if self.done else self.tokens[self._at]

    @property
    def place(self) -> Place:
        """Of the next token; behind the last one at the end."""
        if self.done:
            end = self.tokens[-1].end if self.tokens else 0
            return Place(end, end + 1)
        token = self.tokens[self._at]
        return Place(token.start, token.end)

    def next(self) -> Token:
        token = self.tokens[self._at]
        self._at += 1
        self._wanted.clear()
        return token

    # ---- refusals

    def fail(self, what: str, place: Place | None = None, expected: Sequence[str] = ()) -> InvalidSql:
        return wrong(self.text, place or self.place, what, expected, self.number)

    def refuse(self, *expected: str) -> NoReturn:
        """What stands here is none of what was asked for."""
        wanted = list(dict.fromkeys([*self._wanted, *expected]))
        if self.done:
            raise self.fail("the statement ends too early", expected=wanted)
        found = self.text[self.place.start : self.place.end]
        shown = found if len(found) <= 40 else found[:39] + "…"
        raise self.fail(f"{shown} is not understood here", expected=wanted)

    def end(self) -> None:
        """Nothing more may come."""
        if not self.done:
            self.refuse(END)

    # ---- words and signs

    def accept(self, *words: str) -> bool:
        """Whether these words come next; they are taken then."""
        ahead = self.tokens[self._at : self._at + len(words)]
        if [token.word for token in ahead] == list(words):
            self._at += len(words)
            self._wanted.clear()
            return True
        self._wanted.append(" ".join(words))
        return False

    def expect(self, *words: str) -> None:
        """These words, one after the other, have to come."""
        for word in words:
            if not self.accept(word):
                self.refuse()

    def accept_sign(self, sign: str) -> bool:
        token = self.token
        if token is not None and token.is_sign(sign):
            self.next()
            return True
        self._wanted.append(sign)
        return False

    def expect_sign(self, sign: str) -> None:
        if not self.accept_sign(sign):
            self.refuse()

    def one_of(self, *words: str) -> str:
        """One of these words, which has to come."""
        for word in words:
            if self.accept(word):
                return word
        self.refuse()

    # ---- names

    def name(self, what: str) -> tuple[str, Place]:
        """Words joined by dots without spaces, or one name in quotes, and where it stands."""
        token = self.token
        if token is None or token.kind not in (Kind.WORD, Kind.NAME):
            self.refuse(what)
        first = self.next()
        parts = [first.text]
        end = first.end
        while (
            len(self.tokens) > self._at + 1
            and self.tokens[self._at].is_sign(".")
            and (part := self.tokens[self._at + 1]).kind in (Kind.WORD, Kind.NAME)
        ):
            self._at += 2
            parts.append(part.text)
            end = part.end
        self._wanted.clear()
        return ".".join(parts), Place(first.start, end)

    def topic(self, what: str = "the name of a topic") -> str:
        return self._checked(check_topic, what)

    def table(self) -> str:
        return self.name("the name of a table")[0]

    def registered(self) -> str:
        """The name that a table is registered under."""
        return self._checked(check_table, "the name of a table")

    def pipeline(self) -> str:
        return self._checked(check_pipeline, "the name of a pipeline")

    def group(self, what: str = "the name of a group") -> str:
        """A group or a consumer: a string, a parameter or a name."""
        value, place = self.text_value(what)
        return self._check(check_group, value, place)

    def text_value(self, what: str) -> tuple[str, Place]:
        token = self.token
        if token is not None and token.kind in (Kind.STRING, Kind.PARAMETER):
            value, place = self.literal(what)
            if not isinstance(value, str):
                raise self.fail(f"{what} is a string", place, [what])
            return value, place
        return self.name(what)

    def _checked(self, check: Callable[[str], str], what: str) -> str:
        name, place = self.name(what)
        return self._check(check, name, place)

    def _check(self, check: Callable[[str], str], name: str, place: Place) -> str:
        try:
            return check(name)
        except InvalidRequest as error:
            raise self.fail(error.message, place, [str(error.detail["expected"])]) from error

    # ---- values

    def literal(self, what: str) -> tuple[Scalar | object, Place]:
        """A string, a number, TRUE, FALSE or NULL, or whatever a parameter stands for."""
        token = self.token
        place = self.place
        if token is None:
            self.refuse(what)
        if token.kind is Kind.STRING:
            return self.next().text, place
        if token.kind is Kind.PARAMETER:
            self.next()
            try:
                return self.parameters.take(token), place
            except LookupError as error:
                raise self.fail(str(error), place, [PARAMETER]) from error
        if token.word in _CONSTANTS:
            return _CONSTANTS[self.next().word], place
        if token.kind is Kind.NUMBER or token.is_sign("-"):
            return self._number(what)
        self.refuse(what)

    def string(self, what: str) -> str:
        """A string in quotes, or a parameter that is one."""
        value, place = self.literal(what)
        if not isinstance(value, str):
            raise self.fail(f"{what} is a string", place, [what])
        return value

    def _number(self, what: str) -> tuple[int | float, Place]:
        place = self.place
        negative = self.accept_sign("-")
        token = self.token
        if token is None or token.kind is not Kind.NUMBER:
            self.refuse("a number")
        place = Place(place.start, token.end)
        text = self.next().text
        try:
            value: int | float = int(text) if text.isdecimal() else float(text)
        except ValueError as error:
            raise self.fail(f"{text} is no number", place, [what]) from error
        if isinstance(value, float) and not math.isfinite(value):
            raise self.fail(f"{text} is too large a number", place, [what])
        return -value if negative else value, place

    def whole(self, what: str, low: int = 0, high: int = U64_MAX) -> int:
        """A whole number within bounds."""
        value, place = self.literal(what)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            bounds = f"from {low}" if high == U64_MAX else f"from {low} to {high}"
            raise self.fail(f"{what} is a whole number {bounds}", place, [f"a whole number {bounds}"])
        return value


_CONSTANTS: dict[str, Scalar] = {"TRUE": True, "FALSE": False, "NULL": None}
