"""`docs/BENCHMARKS.md`: an introduction and its parts, each written by a run that measured all of it.

A part that a run did not measure stays as it is in the file.
"""

from __future__ import annotations

import re
from enum import StrEnum

_HEAD = """\
# Benchmarks

Written by `make bench`; do not edit. A bar is what we promise ourselves; a figure that misses it is told, not hidden.
Machines drift by a factor of two, so read ratios before figures. A record has about 100 bytes of data. A rate is the
best of three rounds, ours and the peer's alike; anything else is the median of three.

```sh
make bench                                  # all of it, some minutes; writes this file
.venv/bin/python -m bench --only http       # the measures whose names begin so; a whole part is written
.venv/bin/python -m bench --only live
.venv/bin/python -m bench --only queues
.venv/bin/python -m bench --quick           # a minute, to see that it works
.venv/bin/python -m bench --only reads --json figures.json
```
"""


class Part(StrEnum):
    ENGINE = "The engine, in-process"
    SERVER = "The server against peers"
    FLOODS = "Beside a flood"
    LIVE = "Live delivery against peers"
    QUEUES = "Job queues against peers"
    GROUPS = "Consumer groups against Redis"
    HEAPS = "Messages by priority against peers"
    SPARK = "Topics in Spark"
    SQL = "SELECT beside DuckDB on Parquet"
    PIPELINES = "Pipelines on Spark"


_INTRODUCTIONS = {
    Part.ENGINE: """\
Everything on one core: the event loop, the WAL's threads and the checkpoints. The peer is SQLite in WAL mode with the
same bodies in the same run, but for what a row notes.
""",
    Part.SERVER: """\
Real processes on loopback: `topics serve` and the peers as Debian packages them, with one core for everything a server
does and another for the client. The client is in C, one thread, and sends the same records to each; PostgreSQL has its
own, `pgbench`. A connection sends its next request when the last one is answered. Sides run in turn, each round on an
empty directory. Redis runs without its snapshots, which only cost it time beside its append-only file. "Times the
peer" is our figure divided by the peer's; "rounds" are the least and the most of them. A rate for each second of
processor time is what the processor alone would allow: other work on the machine hardly moves it, and a server that
waits for its disk stays below it.

A peer that is not installed is left out. On Debian: `apt install redis-server nats-server postgresql beanstalkd gcc`.
""",
    Part.FLOODS: """\
One client on one connection sends as much as it can, while a quiet client asks for `/v0/health` each 10 ms on another
one. Its time to an answer counts from when it should have asked. The server has keys; a flood has one where it says so.
Then 60 connections send 64 MiB each and never the last bytes: the figure is by how much the server grows.
""",
    Part.LIVE: """\
The same processes, cores and records, one record a write. All watchers and writers are one client in C: one thread, one
epoll. A latency is from the moment a write is sent, or is due, to the moment a watcher has read it. We store a record
(`disk`) before anybody sees it, as Redis does with XADD (`appendfsync everysec`) and JetStream in its files; Redis
PUBLISH stores nothing and remembers nothing. Every side is held to the same: each watcher gets each record once and in
order, or the run fails. Processor time is all that the server used, the writes included, divided by deliveries.
""",
    Part.QUEUES: """\
The same processes, cores and records; a job is a record. The queue is filled first. All workers are one client in C, a
connection each: claim a batch, complete all of it in one request, claim the next, until the queue is empty. Every side
stores what is claimed and completed without waiting for a sync: we by our default (`disk`), Redis with `appendfsync
everysec` (where a completed entry stays in the stream), JetStream in its files, beanstalkd in its binlog, PostgreSQL
with `synchronous_commit` off and its own client, `pgbench`. NATS does not answer an ack, so its workers send their acks
with the next pull; all others wait for the answer to a completion. beanstalkd hands out one job a command, so its
workers send a batch of commands at once.
""",
    Part.GROUPS: """\
The same processes, cores and client as for the server, one consumer on one connection. Both sides have the same records
in their log, claim 100 at a time and ack them, and write claims and acks to disk: ours with the class `disk`, Redis
with `appendfsync everysec`.
""",
    Part.HEAPS: """\
The same processes and cores; a message is a record with one of 1000 priorities. The heap is filled first. `/v1`, Redis
and beanstalkd have the client in C, a connection a consumer: pop a batch, ack all of it, pop the next. gRPC has a
client in Python, which is the slower of the two sides. Ours syncs before it answers, as does beanstalkd when it is
synced and Redis with `appendfsync always`; ZPOPMIN is without acks and leases, and synced each second.
""",
    Part.SPARK: """\
One local session of Spark over all cores, and `topics serve` on one of them. The peer is the same session with the same
rows as Parquet files on the same disk. A write counts when all rows can be read, exactly once; a read looks at every
value. The archive is from the start of the query to its last commit. A micro-batch is from a write to the row that a
query made of it.
""",
    Part.SQL: """\
The engine in this process, its records in sealed segments, and a query from its text to the JSON of its answer. The
peer is DuckDB itself over a Parquet file with the same rows, a thread on either side. The file is compressed and in
columns, a log is text in the order it was written: what bounds us is making columns of that text.
""",
    Part.PIPELINES: """\
The runner in one local session of Spark over all cores, and `topics serve` on one of them. delta-rs commits rows to a
Delta table, and the time is from behind the commit until the last of them is in the topic, with payload `full` and the
default trigger of 500 ms. "The same on a table of …" is the time for one row there over that on an almost empty table.
""",
}


def parts_of(text: str) -> dict[Part, str]:
    """What a document says in each part that it has."""
    pieces = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return {Part(title): body.strip() + "\n" for title, body in zip(pieces[1::2], pieces[2::2], strict=True)}


def part_text(part: Part, measured: str) -> str:
    return f"{_INTRODUCTIONS[part]}\n{measured}"


def document(parts: dict[Part, str]) -> str:
    told = [f"## {part}\n\n{parts[part].strip()}\n" for part in Part if part in parts]
    return "\n".join([_HEAD, *told])
