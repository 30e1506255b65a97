"""`topics.spark.connect`: a server said once for a session; its topics as tables, and its statements in `spark.sql`.

    session = topics.spark.connect(spark, "http://localhost:7070", key)
    spark.sql("SELECT count(*) FROM topics.orders").show()
    spark.sql("INSERT INTO topics.orders (data) SELECT to_json(struct(*)) FROM bought")
    spark.readStream.table("topics.orders")
    spark.sql("CREATE TOPIC payments PARTITIONS 4")
    spark.sql("CONSUME FROM orders GROUP 'billing' LIMIT 100").show()
    spark.sql("SELECT group_id, lag FROM system.groups").show()
    session.lag()

Address and key travel inside the classes of the sources, pickled: they are in no plan, no page of the UI and no log.
`topics.spark.disconnect(spark)` takes all of it away again.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

from topics.errors import TopicsError
from topics.spark import system
from topics.spark.answers import Answer
from topics.spark.catalog import Catalog
from topics.spark.display import Lag
from topics.spark.options import Options, parse_options
from topics.spark.ranges import partition_states
from topics.spark.server import Server
from topics.spark.source import TopicsSource, preset_source
from topics.spark.statements import Args, Front, Statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from topics.sql.statements import Statement

DATABASE = "topics"


class Session:
    """A server in a Spark session. `connect` makes one."""

    def __init__(self, spark: SparkSession, options: Options, database: str, system_database: str) -> None:
        self._spark = spark
        self._options = options
        self._server = Server(options.url, options.key, options.timeout_ms)
        self._statements = Statements(spark, self._server, self._follow)
        self._alone = Lock()
        """Held by the thread that talks to the server: a session may have several."""
        self._without_table: set[str] = set()
        """Names that statements wrote to, and that are no table here: aliases, and topics that nobody asked for."""
        self._system = system.SystemCatalog(spark, system_database, self._server)
        preset = {"url": options.url, "key": options.key}
        spark.dataSource.register(preset_source(**preset))
        self._catalog = Catalog(spark, database, preset)
        self.refresh()
        self._system.show()
        (Front.of(spark) or Front(spark)).add(database, self._statements, self._leave)

    @property
    def tables(self) -> dict[str, str]:
        """The tables there are, each with the topic behind it."""
        return dict(self._catalog.tables)

    def refresh(self) -> dict[str, str]:
        """Look for topics that came or went since; the tables there are now."""
        names: dict[str, None] = {}
        with self._alone:
            for wanted in self._options.topics:
                if wanted.endswith("*"):
                    names |= dict.fromkeys(state.topic for state in self._server.topics(wanted[:-1]))
                else:
                    names[wanted] = None
            self._catalog.show(names)
            return self.tables

    def sql(self, text: str, args: Args = None) -> list[Answer]:
        """Run statements about topics and groups; an answer for each, with what was lost in `tombstones`.

        `spark.sql` does the same, gives the DataFrame of the last one, and warns of what was lost.
        """
        return self._statements.run(text, args)

    def lag(self, *topics: str) -> Lag:
        """How much is in the topics, and how far behind their archives are; a notebook draws it."""
        with self._alone:
            return Lag.of(partition_states(_only(self._options, topics), self._server))

    def __repr__(self) -> str:
        return f"topics.spark.Session({self._options.url}, {len(self.tables)} tables)"

    def _leave(self) -> None:
        self._catalog.drop()
        self._system.drop()
        self._spark.dataSource.register(TopicsSource)
        self._server.close()

    def _follow(self, done: Sequence[Statement]) -> None:
        """Tables come and go with the topics that statements make and drop."""
        from topics.sql.statements import CreateTopic, DropTopic, Insert

        named = {each.topic for each in done if isinstance(each, CreateTopic | Insert)}
        came = named - self._without_table - set(self._catalog.tables.values())
        if any(isinstance(each, DropTopic) for each in done):
            self._without_table.clear()
        elif not came:
            return
        try:
            self.refresh()
        except TopicsError as error:
            warnings.warn(f"the statements are done, and the tables as they were: {error.message}", stacklevel=2)
        self._without_table |= came - set(self._catalog.tables.values())


def connect(
    spark: SparkSession,
    url: str = "",
    key: str = "",
    *,
    topics: str | Sequence[str] = "*",
    database: str = DATABASE,
    system_database: str = system.DATABASE,
) -> Session:
    """Use a server in a session: `format("topics")` needs no address any more, each topic is a table, and `spark.sql`
    runs statements about topics and groups.

    Without an address or a key those of the environment count (`TOPICS_URL`, `TOPICS_API_KEY`). `topics` are names, or
    prefixes with a `*` behind them. A second server needs another `database`; statements and system tables are those of
    the server that was connected last.
    """
    wanted = topics if isinstance(topics, str) else ",".join(topics)
    return Session(spark, parse_options({"topic": wanted}, {"url": url, "key": key}), database, system_database)


def disconnect(spark: SparkSession) -> None:
    """Take away what `connect` brought into a session: tables, statements, keys. What was never there is no error."""
    front = Front.of(spark)
    if front is not None:
        front.close()


def _only(options: Options, topics: tuple[str, ...]) -> Options:
    return parse_options({"topic": ",".join(topics or options.topics)}, {"url": options.url, "key": options.key})
