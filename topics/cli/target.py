"""Where a data command works: a server by its address, or a directory that no server has open."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from os import environ
from typing import TYPE_CHECKING, Annotated, TypeVar

from cyclopts import Group, Parameter

from topics.cli import eventloop
from topics.client import Client, connect
from topics.client.blocking import Portal
from topics.client.connector import KEY_VARIABLE, URL_DEFAULT, URL_VARIABLE
from topics.client.outage import OnOutage
from topics.errors import InvalidRequest, NotFound
from topics.storage.fs import RealFs

if TYPE_CHECKING:
    from topics import sync

WHERE = Group("Where", sort_key=100)
KEY_HELP = f"The server's key; better in {KEY_VARIABLE}, where `ps` does not show it."

T = TypeVar("T")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Target:
    """The flags that say where, the same for every data command."""

    url: Annotated[
        str | None,
        Parameter(group=WHERE, help=f"A server; {URL_VARIABLE} or {URL_DEFAULT} when not named.", show_default=False),
    ] = None
    dir: Annotated[
        str | None,
        Parameter(group=WHERE, help="A data directory instead, opened in this process.", show_default=False),
    ] = None
    key: Annotated[
        str | None,
        Parameter(group=WHERE, help=KEY_HELP, show_default=False),
    ] = field(default=None, repr=False)

    @property
    def address(self) -> str | None:
        """The server's URL; None when it is a directory."""
        if self.dir is not None:
            if self.url is not None:
                raise InvalidRequest("--url and --dir both say where: give one of them", field="dir")
            return None
        return self.url or environ.get(URL_VARIABLE) or URL_DEFAULT

    @property
    def api_key(self) -> str | None:
        return self.key or environ.get(KEY_VARIABLE) or None

    @property
    def name(self) -> str:
        """What a person calls it."""
        return self.address or self.dir or ""

    def run(
        self,
        work: Callable[[Client], Awaitable[T]],
        *,
        create: bool = False,
        on_outage: OnOutage = lambda error: None,
    ) -> T:
        """Do something with a client. A directory that is not there is made only with `create`."""
        return eventloop.run(self._run(work, create, on_outage))

    def blocking(self) -> sync.Client:
        """A client for plain code, for a command that talks to a person; entered with `with`."""
        from topics import sync

        return sync.Client(self._client(False, lambda error: None), Portal())

    async def _run(self, work: Callable[[Client], Awaitable[T]], create: bool, on_outage: OnOutage) -> T:
        async with self._client(create, on_outage) as client:
            return await work(client)

    def _client(self, create: bool, on_outage: OnOutage) -> Client:
        if self.address is not None:
            return connect(self.address, key=self.api_key, on_outage=on_outage)
        assert self.dir is not None
        if not create:
            require_directory(self.dir)
        # Who talks to a server, or completes a name, need not wait for an engine to be loaded.
        from topics import embedded

        return embedded.open(self.dir)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class KeyedTarget(Target):
    """The same for a command whose `--key` is something else: the server's key is `--api-key` there."""

    key: Annotated[
        str | None,
        Parameter(name="--api-key", group=WHERE, help=KEY_HELP, show_default=False),
    ] = field(default=None, repr=False)


DEFAULT_TARGET = Target()
KEYED_TARGET = KeyedTarget()


def require_directory(path: str) -> None:
    """Refuse a path that holds no data, instead of making an empty directory of a slip of the pen."""
    if not RealFs().exists(f"{path}/wal"):
        raise NotFound(
            f"{path} is no data directory: it has no wal/ in it; name the one that a server or program was given, "
            "or make one with `topics serve --data-dir DIR`"
        )
