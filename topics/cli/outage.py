"""What a person who follows something is told when the server goes away and comes back."""

from __future__ import annotations

from topics.cli.screen import Screen
from topics.client.outage import OnOutage
from topics.errors import TopicsError


def noted(screen: Screen, server: str) -> OnOutage:
    """A line on stderr each time."""

    def note(error: TopicsError | None) -> None:
        if error is None:
            screen.note(f"{server} is back; going on where it stopped", "yellow")
        else:
            screen.note(f"{server} went away ({error.code}); waiting for it to come back", "yellow")

    return note
