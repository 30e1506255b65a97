"""Topics in Spark: `format("topics")` for DataFrames and streams, both ways.

Spark finds the format by itself (`pyspark_topics.py`) wherever `topics[spark]` is installed. This package speaks the
public HTTP API and nothing else, so it runs on a cluster that has no engine, and nothing of the rest imports it.

    options.py    what a user says          server.py   the HTTP calls that Spark needs, blocking
    source.py     the format itself         columns.py  its columns       values.py  JSON to structs
    ranges.py     what a task reads         pages.py    how it reads it     jobs.py  queues as tables
    reader.py     batch: `spark.read`       stream.py   `spark.readStream`     offsets.py  where a stream is
    sink.py       `write` and `writeStream`: staged in tasks (staging.py), published on the driver
                  outgoing.py  which row goes where     jsontexts.py  values to JSON
    session.py    `connect`: topics as tables     catalog.py  their names     display.py  how topics stand, for people
                  statements.py answers.py  CONSUME, ACK, … in `spark.sql`     system.py  system tables
    lake.py       history as Delta tables: archive.py lakequery.py  the query
                  laketable.py lakefile.py lakecolumns.py  the table
                  lakecare.py lakeerase.py  looking after it     history.py  lake and server read as one
    pipeline/     changes of tables into topics, topics into topics and tables: its `__init__.py` has the map
    load.py export.py redrive.py   files in, files out, records again     launch.py  a session for a command
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topics.spark.answers import Answer
    from topics.spark.session import Session, connect, disconnect
    from topics.spark.statements import RecordsLostWarning

__all__ = ["Answer", "RecordsLostWarning", "Session", "connect", "disconnect"]


def __getattr__(name: str) -> Any:
    # Much of this package works without Spark, which takes a second to load.
    if name in __all__:
        from topics.spark import answers, session, statements

        rooms = {"Answer": answers, "RecordsLostWarning": statements}
        return getattr(rooms.get(name, session), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
