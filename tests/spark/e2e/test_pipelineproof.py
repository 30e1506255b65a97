"""Thousands of random changes of a Delta table and of PostgreSQL, while server, runner and driver are killed at random.

Each of the three dies by SIGKILL again and again, in the middle of whatever it does, and is started again as a
supervisor would. In the end the topics rebuild the tables exactly, each change is there once and in its place, and
the table that was made out of a topic again is the same as the first.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.cli.rig import clean_environment
from tests.postgresrig import directory_of_programs, postgres
from tests.spark.pipeline import deltas
from tests.spark.pipeline.histories import History, keys_left, replayed
from topics.cdc.opening import opened
from topics.errors import TopicsError
from topics.pipelinemodel import PipelineCondition
from topics.sync import Client, connect

CHANGES = 10_000
KILLS = 12
WAIT_S = 900


class Killed:
    """A command that is started again whenever it has died."""

    def __init__(self, *words: str, log: Path, **variables: str) -> None:
        self._words = words
        self._log = log
        self._variables = variables
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "topics", *self._words],
                env=clean_environment() | self._variables,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def keep(self) -> None:
        if self.process.poll() is not None:
            self.end()
            self.process = self._start()

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def kill_driver(self) -> None:
        """The Java process below it, if there is one by now."""
        for child in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            if b"java" in Path(f"/proc/{child}/cmdline").read_bytes():
                os.kill(int(child), signal.SIGKILL)

    def end(self) -> None:
        """Nothing of it is left, also of what had lost its parent."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.process.wait()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def change_delta(history: History, location: str) -> int:
    match history.chance.choice(["insert", "update", "delete", "merge"]) if len(history.rows) > 50 else "insert":
        case "insert":
            rows = history.new_rows(history.chance.randint(1, 60))
            write_deltalake(location, pa.Table.from_pylist(rows, schema=deltas.COLUMNS), mode="append")
            return len(rows)
        case "update":
            ids = history.raised_ids()
            DeltaTable(location).update(updates={"n": "n + 1"}, predicate=f"id IN ({', '.join(map(str, ids))})")
            return len(ids)
        case "delete":
            ids = history.removed_ids()
            DeltaTable(location).delete(f"id IN ({', '.join(map(str, ids))})")
            return len(ids)
        case _:
            rows = history.merged_rows(40)
            merger = DeltaTable(location).merge(
                pa.Table.from_pylist(rows, schema=deltas.COLUMNS), "t.id = s.id", source_alias="s", target_alias="t"
            )
            merger.when_matched_update_all().when_not_matched_insert_all().execute()
            return len(rows)


def change_postgres(history: History, database: Any) -> int:
    """One transaction; every fourth is rolled back."""
    if history.chance.random() < 0.25:
        with database.transaction(force_rollback=True):
            database.execute("DELETE FROM messages WHERE id % 2 = 0")
        return 0
    with database.transaction():
        rows = history.new_rows(12)
        for row in rows:
            database.execute("INSERT INTO messages VALUES (%s, %s, %s)", [row["id"], row["body"], row["n"]])
        raised, removed = history.raised_ids(), history.removed_ids()
        database.execute("UPDATE messages SET n = n + 1 WHERE id = ANY(%s)", [raised])
        database.execute("DELETE FROM messages WHERE id = ANY(%s)", [removed])
        return len(rows) + len(raised) + len(removed)


def until(there: Callable[[], bool], keep: Callable[[], None]) -> None:
    for _ in range(WAIT_S * 4):
        keep()
        try:
            if there():
                return
        except TopicsError:
            pass
        Event().wait(0.25)
    raise AssertionError("it does not come to its end")


def records(client: Client, topic: str) -> list[Any]:
    found: list[Any] = []
    while True:
        page = client.topic(topic).diff(len(found), limit=1000)
        found += page.records
        if page.caught_up:
            return found


def position(client: Client, pipeline: str) -> str:
    report = client.pipeline(pipeline).state().report
    return "" if report is None else report.position


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_tables_and_topics_agree_whoever_dies(tmp_path: Path) -> None:
    if directory_of_programs() is None:
        pytest.skip("no PostgreSQL (Debian: apt install postgresql)")
    chance, of_delta, of_postgres = random.Random(3), History(4), History(5)
    location, copy = deltas.make(tmp_path / "t"), str(tmp_path / "copy")
    url = f"http://127.0.0.1:{free_port()}"
    serve = ("serve", "--data-dir", str(tmp_path / "data"), "--port", url.rpartition(":")[2], "--no-grpc")
    run = ("pipeline", "run", "--url", url, "--checkpoints", str(tmp_path / "positions"), "--master", "local[2,3]")
    with postgres() as address, psycopg.connect(address, autocommit=True) as database, connect(url) as client:
        database.execute("CREATE TABLE messages (id bigint PRIMARY KEY, body text, n bigint)")
        with opened(address) as outbox:
            outbox.install("public.messages")
        server = Killed(*serve, log=tmp_path / "server.log")
        until(lambda: bool(client.sql("SHOW TOPICS")), server.keep)
        declare(client, location, copy, address)
        runner = Killed(*run, log=tmp_path / "runner.log")

        def keep() -> None:
            server.keep()
            runner.keep()

        try:
            # What comes behind the snapshot is what counts.
            until(lambda: position(client, "routes:messages").startswith("id "), keep)
            done, killed = [0, 0], 0
            while min(done) < CHANGES or killed < KILLS:
                if done[0] < CHANGES:
                    done[0] += change_delta(of_delta, location)
                for _ in range(3):
                    if done[1] < CHANGES:
                        done[1] += change_postgres(of_postgres, database)
                keep()
                if min(done) >= CHANGES:
                    # Whoever is killed has had time to do something.
                    Event().wait(chance.uniform(1, 20))
                if chance.random() < KILLS / 150 or min(done) >= CHANGES:
                    killed += 1
                    chance.choice([server.kill, runner.kill, runner.kill_driver])()
            version = DeltaTable(location).version()
            until(lambda: position(client, "routes:chat.messages") == f"version {version}", keep)
            until(lambda: replayed(records(client, "pg")) == of_postgres.content(), keep)
            head = records(client, "full")[-1].seq
            until(lambda: position(client, "back") == f"full/0@{head}", keep)
            full, diff, keys, pg = (records(client, topic) for topic in ("full", "diff", "keys", "pg"))
            assert replayed(full) == replayed(diff) == of_delta.content() == deltas.content(location)
            assert keys_left(keys) == sorted(of_delta.rows)
            assert deltas.content(copy) == of_delta.content()
            for found in (full, diff, keys, pg):
                ids = [record.data["message_id"] for record in found]
                assert len(set(ids)) == len(ids)
            # A change of nothing (a null that stays null) is in the outbox of a database and not in the feed of Delta.
            assert len(full) >= CHANGES // 2 and len(pg) >= CHANGES
            runner.process.send_signal(signal.SIGTERM)
            assert runner.process.wait(WAIT_S) == 0
            conditions = {state.condition for state in client.pipelines()}
            assert conditions == {PipelineCondition.STOPPED}
        finally:
            runner.end()
            server.end()


def declare(client: Client, location: str, copy: str, address: str) -> None:
    client.sql(f"REGISTER TABLE chat.messages USING delta LOCATION '{location}' KEY (id)")
    for topic, payload in (("full", "full"), ("diff", "diff"), ("keys", "key")):
        client.sql(f"CREATE TOPIC {topic} WITH (durability = 'fsync')")
        client.sql(
            f"ALTER TOPIC {topic} ADD SOURCE chat.messages ON INSERT, UPDATE, DELETE FROM VERSION 0 "
            f"WITH (payload = '{payload}')"
        )
    client.sql("CREATE TOPIC pg WITH (durability = 'fsync')")
    client.sql(
        f"REGISTER TABLE messages USING postgresql LOCATION '{address}' KEY (id) WITH (source = 'public.messages')"
    )
    client.sql("ALTER TOPIC pg ADD SOURCE messages ON INSERT, UPDATE, DELETE FROM SNAPSHOT WITH (payload = 'full')")
    client.sql(
        f"CREATE PIPELINE back AS MERGE INTO delta.'{copy}' KEY (id) "
        "FROM STREAM full SCHEMA 'id bigint, body string, n bigint'"
    )
