"""The words of a text: sqlglot's tokenizer with our quotes, and where each word stands.

A name in double quotes or backticks is a `NAME` whose text is what stands between them; everything else keeps the
kind that matters to the grammar. What no statement can contain is refused here, with its place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from itertools import islice
from typing import ClassVar

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType
from sqlglot.tokens import Tokenizer

from topics.errors import InvalidSql
from topics.limits import SQL_BYTES_MAX, SQL_WORDS_MAX
from topics.sql.place import Place, wrong

_WORD = re.compile(
    r"""'[^']*(?:''[^']*)*'? | "[^"]*"? | `[^`]*`? | --[^\n]* | /\*(?:.*?\*/|.*) | \d[\w.]* | \w+ | \S""",
    re.DOTALL | re.VERBOSE,
)
"""What becomes a token, or no token at all, as far as counting goes: this takes a hundredth of the time."""
_SURROGATE = re.compile("[\ud800-\udfff]")


class Kind(Enum):
    WORD = auto()
    """Letters, digits and underscores, as typed: a keyword or a name."""
    NAME = auto()
    """Between double quotes or backticks."""
    STRING = auto()
    NUMBER = auto()
    PARAMETER = auto()
    """`?`, or `$` and a number."""
    SIGN = auto()
    """Anything else: punctuation and operators."""


@dataclass(frozen=True, slots=True)
class Token:
    kind: Kind
    text: str
    """Without quotes; of a parameter the number, or nothing."""
    start: int
    end: int
    """Where it stands in the text, and where it is over."""

    @property
    def word(self) -> str:
        """The keyword it may be, in capitals; empty when it cannot be one."""
        return self.text.upper() if self.kind is Kind.WORD else ""

    def is_sign(self, text: str) -> bool:
        return self.kind is Kind.SIGN and self.text == text


class _Words(Tokenizer):
    """Both kinds of quotes for names. A quote inside is doubled, of names as of strings; there is no other escape."""

    IDENTIFIERS: ClassVar = ['"', "`"]
    QUOTES: ClassVar = ["'"]
    STRING_ESCAPES: ClassVar = ["'"]
    COMMENTS: ClassVar = ["--", ("/*", "*/")]
    # Keywords of several words would be one token, and a few stand for what we have no use for.
    KEYWORDS: ClassVar = {
        text: kind
        for text, kind in Tokenizer.KEYWORDS.items()
        if text.isalpha() or not any(character.isalnum() or character == "_" for character in text)
    }
    COMMANDS: ClassVar[set[TokenType]] = set()


def tokenize(text: str) -> list[Token]:
    """All tokens of a text. `InvalidSql` when a quote or a comment has no end, or a character means nothing."""
    if len(text.encode("utf-8", "surrogatepass")) > SQL_BYTES_MAX:
        raise InvalidSql(f"a text of statements holds {SQL_BYTES_MAX} bytes at most", max_bytes=SQL_BYTES_MAX)
    if next(islice(_WORD.finditer(text), SQL_WORDS_MAX, None), None) is not None:
        raise InvalidSql(
            f"a text of statements has {SQL_WORDS_MAX} words and signs at most; give values as parameters, or in parts",
            max_words=SQL_WORDS_MAX,
        )
    if _SURROGATE.search(text):
        raise InvalidSql("a text of statements is valid Unicode: half of a surrogate pair stands alone in it")
    try:
        found = _Words().tokenize(text)
    except (TokenError, ValueError) as error:
        raise _untokenizable(text) from error
    return [_token(text, each.token_type, each.text, each.start, each.end + 1) for each in found]


def _token(text: str, kind: TokenType, value: str, start: int, stop: int) -> Token:
    first, whole = text[start], text[start:stop]
    if kind is TokenType.STRING and first == "'":
        return Token(Kind.STRING, value, start, stop)
    if kind is TokenType.IDENTIFIER:
        return Token(Kind.NAME, value, start, stop)
    if kind is TokenType.NUMBER:
        return Token(Kind.NUMBER, whole, start, stop)
    if whole == "?" or (first == "$" and whole[1:].isdecimal()):
        return Token(Kind.PARAMETER, whole[1:], start, stop)
    if first.isalpha() or first == "_":
        return Token(Kind.WORD, whole, start, stop)
    return Token(Kind.SIGN, whole, start, stop)


def _untokenizable(text: str) -> InvalidSql:
    """Where the text cannot be read: the first quote or comment without an end."""
    at, closing = 0, {"'": "'", '"': '"', "`": "`"}
    while at < len(text):
        if text.startswith("--", at):
            at = text.find("\n", at)
            if at < 0:
                break
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            if end < 0:
                return wrong(text, Place(at, at + 2), "a comment has no end", expected=["*/"])
            at = end + 2
        elif (quote := closing.get(text[at])) is not None:
            end = text.find(quote, at + 1)
            if end < 0:
                return wrong(text, Place(at, at + 1), "a quote has no end", expected=[quote])
            at = end + 1
        else:
            at += 1
    return wrong(text, Place(0, min(len(text), 1)), "this cannot be read as SQL", expected=["a statement"])
