"""Quotes: a name or a string as text that reads back as the same, and a text whose names all have double quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from topics.sql.tokens import Kind, Token
from topics.sql.words import WORDS

_RESERVED = frozenset(WORDS)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")


def quoted_name(name: str) -> str:
    """A name as it stands in a statement: bare where that reads back as the same, and as a name."""
    bare = _PLAIN.fullmatch(name) and not _RESERVED.intersection(name.upper().split("."))
    return name if bare else identifier(name)


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def quoted_string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def requoted(text: str, tokens: Sequence[Token], replaced: dict[int, str] | None = None) -> str:
    """The text of some tokens, from the first to the last, with backticks turned into double quotes.

    `replaced` has other text for tokens, by where they begin.
    """
    parts = []
    at = tokens[0].start
    for token in tokens:
        parts.append(text[at : token.start])
        if replaced is not None and token.start in replaced:
            parts.append(replaced[token.start])
        elif token.kind is Kind.NAME:
            parts.append(identifier(token.text))
        else:
            parts.append(text[token.start : token.end])
        at = token.end
    return "".join(parts)
