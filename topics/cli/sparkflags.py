"""Where a command that uses Spark runs: the flags, and the session that ends with the command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from topics.cli.target import Target
from topics.errors import Internal, InvalidRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK = Group("Spark", sort_key=90)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SparkFlags:
    """The flags that say which Spark, the same for every command that needs one."""

    master: Annotated[
        str,
        Parameter(
            group=SPARK,
            alias="--remote",
            help="`local[*]`, `spark://HOST:7077`, or `sc://HOST:15002` for Spark Connect.",
        ),
    ] = "local[*]"
    conf: Annotated[
        list[str],
        Parameter(group=SPARK, negative="", help="NAME=VALUE of Spark's config; may be repeated.", show_default=False),
    ] = field(default_factory=list)

    @property
    def is_connect(self) -> bool:
        """Whether the session is one of a Spark Connect server, which has a config of its own."""
        return self.master.startswith("sc://")

    @contextmanager
    def session(self, target: Target, *scopes: str) -> Iterator[SparkSession]:
        """A session for work on a server, which is asked first whether the key has these scopes: Spark starts slowly.

        That of a Connect server is there at once, and the server may have another address where that one runs.
        """
        require_spark()
        from pyspark.errors import PySparkException

        from topics.spark.launch import NoJava, NotStarted, session

        config = self._config()
        if not self.is_connect:
            _check_server(target, scopes)
        try:
            with session(self.master, config) as spark:
                yield spark
        except NoJava as error:
            raise InvalidRequest(str(error), expected="java") from error
        except NotStarted as error:
            raise InvalidRequest(f"Spark did not start: {error}") from error
        except PySparkException as error:
            raise Internal(_words(str(error))) from error

    def _config(self) -> dict[str, str]:
        pairs = [text.partition("=") for text in self.conf]
        for name, equals, _ in pairs:
            if not (name and equals):
                raise InvalidRequest(f"--conf {name}: expected NAME=VALUE", field="conf", expected="NAME=VALUE")
        return {name: value for name, _, value in pairs}


DEFAULT_SPARK = SparkFlags()
ASK_MS = 1_000
"""How long a server that is away is asked again, before Spark is started for it."""
_OURS = re.compile(r"^topics\.[\w.]+: (.+)$", re.M)
"""An error of ours as Spark tells it, at the end of a trace of its own."""


def _words(text: str) -> str:
    """What a failed job has to say, without where in Spark it happened."""
    found = _OURS.search(text)
    return found[1] if found else text.strip().splitlines()[0]


def _check_server(target: Target, scopes: Sequence[str]) -> None:
    from topics.spark.server import Server

    server = Server(*server_of(target), ASK_MS)
    try:
        server.check_scopes(*scopes)
    finally:
        server.close()


def require_spark() -> None:
    """Say what to install when something is missing, before anything begins."""
    if find_spec("pyspark") is None or find_spec("deltalake") is None:
        raise InvalidRequest("this needs Spark: pip install 'topics[spark]'", expected="topics[spark]")


def require_lake() -> None:
    """The same for what works on a lake without Spark."""
    if find_spec("deltalake") is None:
        raise InvalidRequest("a lake needs Delta: pip install 'topics[spark]'", expected="topics[spark]")


def server_of(target: Target) -> tuple[str, str]:
    """Address and key, as the Spark side takes them; a directory cannot be read from other processes."""
    if target.address is None:
        raise InvalidRequest(
            "Spark reads from several processes at once, and a directory is one process's: start `topics serve` on it "
            "and say --url",
            field="dir",
        )
    return target.address, target.api_key or ""
