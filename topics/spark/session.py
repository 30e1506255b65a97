"""`topics.spark.connect`: a server said once for a session, and its topics as tables.

    session = topics.spark.connect(spark, "http://localhost:7070", key)
    spark.sql("SELECT count(*) FROM topics.orders").show()
    spark.sql("INSERT INTO topics.orders (data) SELECT to_json(struct(*)) FROM bought")
    spark.readStream.table("topics.orders")
    session.lag()

Address and key travel inside the classes of the sources, pickled: they are in no plan, no page of the UI and no log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from topics.spark.catalog import Catalog
from topics.spark.display import Lag
from topics.spark.options import Options, parse_options
from topics.spark.ranges import partition_states
from topics.spark.server import Server
from topics.spark.source import preset_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATABASE = "topics"


class Session:
    """A server in a Spark session. `connect` makes one."""

    def __init__(self, spark: SparkSession, options: Options, database: str) -> None:
        self._options = options
        self._server = Server(options.url, options.key, options.timeout_ms)
        preset = {"url": options.url, "key": options.key}
        spark.dataSource.register(preset_source(**preset))
        self._catalog = Catalog(spark, database, preset)
        self.refresh()

    @property
    def tables(self) -> dict[str, str]:
        """The tables there are, each with the topic behind it."""
        return dict(self._catalog.tables)

    def refresh(self) -> dict[str, str]:
        """Look for topics that came or went since; the tables there are now."""
        names: dict[str, None] = {}
        for wanted in self._options.topics:
            if wanted.endswith("*"):
                names |= dict.fromkeys(state.topic for state in self._server.topics(wanted[:-1]))
            else:
                names[wanted] = None
        self._catalog.show(list(names))
        return self.tables

    def lag(self, *topics: str) -> Lag:
        """How much is in the topics, and how far behind their archives are; a notebook draws it."""
        return Lag.of(partition_states(_only(self._options, topics), self._server))

    def __repr__(self) -> str:
        return f"topics.spark.Session({self._options.url}, {len(self.tables)} tables)"


def connect(
    spark: SparkSession,
    url: str = "",
    key: str = "",
    *,
    topics: str | Sequence[str] = "*",
    database: str = DATABASE,
) -> Session:
    """Use a server in a session: `format("topics")` needs no address any more, and each topic is a table.

    Without an address or a key those of the environment count (`TOPICS_URL`, `TOPICS_API_KEY`). `topics` are names, or
    prefixes with a `*` behind them.
    """
    wanted = topics if isinstance(topics, str) else ",".join(topics)
    return Session(spark, parse_options({"topic": wanted}, {"url": url, "key": key}), database)


def _only(options: Options, topics: tuple[str, ...]) -> Options:
    return parse_options({"topic": ",".join(topics or options.topics)}, {"url": options.url, "key": options.key})
