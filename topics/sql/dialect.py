"""Whose statement a text is, where Spark's SQL and ours come in at the same door: ours, or Spark's.

The first words decide, and nothing behind them is read: a text that is Spark's costs a few microseconds, and may hold
whatever our tokenizer has never heard of. SELECT, and EXPLAIN of one, is Spark's: there topics are its tables. Where
a table could be called `topic`, what follows tells: `INSERT INTO topic VALUES …` and `DESCRIBE topic` are about one.
"""

from __future__ import annotations

import re

OPENINGS: frozenset[tuple[str, ...]] = frozenset(
    {
        *((word,) for word in ("CONSUME", "ACK", "NACK", "EXTEND", "PAUSE", "RESUME", "REGISTER", "UNREGISTER")),
        *((word, "TOPIC") for word in ("CREATE", "ALTER", "DROP", "CLEAR", "DESCRIBE")),
        *((word, "PIPELINE") for word in ("CREATE", "ALTER", "DROP", "DESCRIBE")),
        *((word, "GROUP") for word in ("RESET", "DROP")),
        *(("SHOW", word) for word in ("TOPICS", "GROUPS", "ROUTES", "PIPELINES")),
        ("INSERT", "INTO", "TOPIC"),
        ("CREATE", "OR", "REPLACE", "PIPELINE"),
    }
)
"""How a statement of ours begins."""

_LIKE_A_TABLE = frozenset({("INSERT", "INTO", "TOPIC"), ("DESCRIBE", "TOPIC")})
_BEHIND_A_TABLE = frozenset({"", "AS", "BY", "FROM", "PARTITION", "REPLACE", "SELECT", "TABLE", "VALUES", "WITH"})
"""What follows in `INSERT INTO topic` and `DESCRIBE topic` when a table has that name; nothing is one of them."""

_LOOKED_AT = 5
"""Words: EXPLAIN, and the longest of them with the word behind it, as far as that matters."""

_WORD = re.compile(r"(?:\s|--[^\n]*|/\*.*?\*/)*+([A-Za-z_0-9]++|[\"`]|.)", re.DOTALL)
"""The next word or sign, behind spaces and comments."""


def is_ours(text: str) -> bool:
    """Whether a text begins with a statement of ours."""
    words = _first_words(text)
    if words and words[0] == "EXPLAIN":
        words = words[1:]
    for count in range(1, len(words) + 1):
        opening = tuple(words[:count])
        if opening in OPENINGS:
            following = "".join(words[count : count + 1])
            return opening not in _LIKE_A_TABLE or following not in _BEHIND_A_TABLE
    return False


def _first_words(text: str) -> list[str]:
    """The first words, in capitals; a quote begins a name and is a word of its own, any other sign is the end."""
    words: list[str] = []
    at = 0
    while len(words) < _LOOKED_AT and (found := _WORD.match(text, at)) is not None:
        word = found[1]
        if not (word[0].isalnum() or word[0] in '_"`'):
            break
        words.append(word.upper())
        at = found.end()
    return words
