"""Our text as Spark's: names in backticks, and strings in which nothing but what we say is special.

In our statements a name may stand in double quotes, and a backslash in a string is a backslash. Spark takes the first
for a string and the second for an escape, so a text that is stored for Spark is written anew, word by word.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from topics.sql.place import Place
from topics.sql.tokens import Kind, Token, tokenize


def to_spark(text: str) -> str:
    """An expression or a query of ours, as Spark reads it."""
    tokens = tokenize(text)
    return SparkText(text, [(Place(token.start, token.end), spark_token(text, token)) for token in tokens]).text


def spark_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def spark_string(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def spark_token(text: str, token: Token) -> str:
    if token.kind is Kind.NAME:
        return spark_name(token.text)
    if token.kind is Kind.STRING:
        return spark_string(token.text)
    return text[token.start : token.end]


class SparkText:
    """Pieces of a text, each as Spark has it, with what stood between them; and where each came from."""

    def __init__(self, text: str, pieces: Sequence[tuple[Place, str]]) -> None:
        self._starts: list[int] = []
        self._places: list[Place] = []
        parts: list[str] = []
        length = 0
        at = pieces[0][0].start if pieces else 0
        for place, new in pieces:
            between = text[at : place.start]
            length += len(between)
            self._starts.append(length)
            self._places.append(place)
            parts += [between, new]
            length += len(new)
            at = place.end
        self.text = "".join(parts)

    def place(self, position: int) -> Place:
        """What stands at a position of Spark's text, in the text it came from."""
        return self._places[max(0, bisect_right(self._starts, position) - 1)]
