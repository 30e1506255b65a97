"""A text that must not be seen: in no log, no error, no traceback, no listing of settings."""

from __future__ import annotations

HIDDEN = "***"


class Secret:
    """Holds its text until somebody takes it. A copy is the same object, so that taking it empties every copy."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def take(self) -> str:
        """The text, once; afterwards it is empty."""
        text, self._text = self._text, ""
        return text

    def __repr__(self) -> str:
        return HIDDEN

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> str:
        raise TypeError("a secret is not written anywhere: it cannot be pickled")
