"""Parameters by name, `:limit`, as Spark writes them: the same text with numbers in their place.

An error still stands where it does in the text as it was written, because the tokens do; the text with numbers is what
a server gets, beside the values in their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from topics.errors import InvalidSql
from topics.sql.place import Place, wrong
from topics.sql.tokens import Kind, Token, tokenize


@dataclass(frozen=True, slots=True)
class Numbered:
    text: str
    """With `$1`, `$2`, …"""
    values: list[object]
    tokens: list[Token]
    """Of the text as it was, with numbered parameters among them."""


def numbered(text: str, values: Mapping[str, object]) -> Numbered:
    """The text with numbers for names; `InvalidSql` when a name has no value, or a value no place."""
    used: dict[str, int] = {}
    tokens: list[Token] = []
    parts: list[str] = []
    at = 0
    for token in tokenize(text):
        if token.kind is Kind.PARAMETER:
            raise wrong(text, _place(token), "the values have names here", [f":{name}" for name in values])
        if token.kind is Kind.WORD and tokens and tokens[-1].is_sign(":") and tokens[-1].end == token.start:
            whole = Place(tokens.pop().start, token.end)
            if token.text not in values:
                raise wrong(text, whole, f"there is no value for :{token.text}", [f":{name}" for name in values])
            number = used.setdefault(token.text, len(used) + 1)
            tokens.append(Token(Kind.PARAMETER, str(number), whole.start, whole.end))
            parts += [text[at : whole.start], f"${number}"]
            at = whole.end
        else:
            tokens.append(token)
    left = [name for name in values if name not in used]
    if left:
        raise InvalidSql(f"no statement uses {', '.join(f':{name}' for name in left)}", unused=left)
    return Numbered("".join([*parts, text[at:]]), [values[name] for name in used], tokens)


def _place(token: Token) -> Place:
    return Place(token.start, token.end)
