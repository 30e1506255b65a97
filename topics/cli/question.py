"""Asking a person before something is gone for good."""

from __future__ import annotations

from contextlib import aclosing

from rich.text import Text

from topics.cli.screen import Screen, printable
from topics.cli.source import stdin_chunks
from topics.errors import InvalidRequest


async def agreed(screen: Screen, question: str, *, yes: bool, explicit: bool = False) -> bool:
    """Whether to go on: asked at a terminal, taken for granted in a script and with `yes`.

    With `explicit` a script has to say `--yes`: what would go is not named one by one. Anything but y is a no.
    """
    if yes:
        return True
    if not screen.can_ask:
        if explicit:
            message = f"no terminal to confirm on: {question[0].lower()}{question[1:]} Say --yes to do it"
            raise InvalidRequest(message, field="yes", expected="--yes")
        return True
    screen.errors.print(Text(f"{printable(question)} [y/N] ", style="bold yellow"), end="", soft_wrap=True)
    async with aclosing(stdin_chunks()) as chunks:
        answer = await anext(chunks, b"")
    if not answer.endswith(b"\n"):
        screen.errors.print()
    return answer.strip().lower() in (b"y", b"yes")
