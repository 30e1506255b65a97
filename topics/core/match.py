"""What a delete, a filtered read or a router names records by: one tag, or every tag with a prefix."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from topics.errors import InvalidRequest

EXPECTED = '"x", ["tag","Eq","x"] or ["tag","Glob","x*"]'


@dataclass(frozen=True, slots=True)
class Match:
    text: bytes
    prefix: bool

    def matches(self, tag: bytes) -> bool:
        """Whether a tag, empty for none, matches; no tag never does."""
        return bool(tag) and (tag.startswith(self.text) if self.prefix else tag == self.text)

    def positions(self, index: Mapping[bytes, list[int]]) -> list[int]:
        """The positions an unordered tag index holds for this match."""
        if not self.prefix:
            return index.get(self.text, [])
        return [at for tag, places in index.items() if tag.startswith(self.text) for at in places]

    def as_wire(self) -> list[str]:
        text = self.text.decode()
        return ["tag", "Glob", text + "*"] if self.prefix else ["tag", "Eq", text]


def parse_match(value: object, field: str = "match") -> Match:
    """The predicate a client sent, or `InvalidRequest` saying what would be right."""
    if isinstance(value, str):
        return Match(value.encode(), prefix=False)
    if not (isinstance(value, list | tuple) and len(value) == 3 and all(isinstance(part, str) for part in value)):
        raise InvalidRequest(f"{field} must be {EXPECTED}", field=field, expected=EXPECTED)
    subject, operator, text = value
    if subject != "tag":
        raise InvalidRequest(f'{field}[0] must be "tag", not "{subject}"', field=f"{field}[0]", expected="tag")
    if operator == "Eq":
        return Match(text.encode(), prefix=False)
    if operator != "Glob":
        raise InvalidRequest(
            f'{field}[1] must be "Eq" or "Glob", not "{operator}"', field=f"{field}[1]", expected="Eq or Glob"
        )
    if not text.endswith("*") or "*" in text[:-1]:
        raise InvalidRequest(
            f"{field}[2] of a Glob is a literal prefix and one trailing *, like tenant42:*",
            field=f"{field}[2]",
            expected="a literal prefix followed by one *",
        )
    return Match(text[:-1].encode(), prefix=True)
