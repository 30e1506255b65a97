"""Streams that are open are looked at: those that ended are forgotten, those whose owner is gone end."""

from __future__ import annotations

from tests.server.outlets import Tape, streamed
from topics.errors import Unauthorized
from topics.server.auth import Authenticator
from topics.server.openstreams import OpenStreams
from topics.server.principal import ALL_SCOPES, Principal


class Door(Authenticator):
    """Knows who may still come in."""

    def __init__(self, *known: str) -> None:
        super().__init__(is_on=True)
        self.known = set(known)

    def owned(self, owner: str) -> Principal:
        if owner not in self.known:
            raise Unauthorized("gone")
        return Principal("key-1", ALL_SCOPES, (), owner=owner)


def test_what_ended_by_itself_is_forgotten_and_what_never_opened_is_kept() -> None:
    door = Door("key:a")
    streams = OpenStreams(door)
    ended, waiting = streamed(Tape()), streamed(Tape())
    for response in (ended, waiting):
        streams.add(door.owned("key:a"), response)
    streams.add(Principal("key-9", ALL_SCOPES, ()), streamed(Tape()))
    assert len(streams) == 2, "a key of the settings is good as long as the server runs"
    ended.close()
    streams.sweep()
    assert len(streams) == 1
    waiting.close()
    streams.sweep()
    assert len(streams) == 0
