"""The runner, with a real server and real tables: what is declared is done, once, whatever happens on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.spark.pipeline import deltas
from tests.spark.pipeline.histories import History, keys_left, replayed
from topics.cdc.opening import opened
from topics.errors import NotFound
from topics.pipelinemodel import PipelineCondition, RunState
from topics.spark.pipeline import runner as runner_module
from topics.spark.pipeline.runner import LOOK_MS, Runner
from topics.sync import Client
from topics.testing.clock import SimClock
from topics.testing.served import RunningServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TURNS_MAX = 3000
WIDER = pa.schema([*deltas.COLUMNS, pa.field("more", pa.int64())])


@pytest.fixture
def runner(spark: SparkSession, topics_server: RunningServer, tmp_path: Path) -> Iterator[Callable[..., Runner]]:
    made: list[Runner] = []

    def make(**how: Any) -> Runner:
        found = Runner(spark, url=topics_server.url, checkpoints=str(tmp_path / "positions"), **how)
        made.append(found)
        return found

    yield make
    for each in made:
        for job in each.jobs.values():
            job.end()


def until(runner: Runner, there: Callable[[], bool]) -> None:
    """Let a runner run until something is so."""
    for _ in range(TURNS_MAX):
        runner.turn()
        if there():
            return
        Event().wait(0.05)
    raise AssertionError({name: (job.phase, job.last_error) for name, job in runner.jobs.items()})


def records(client: Client, topic: str) -> list[Any]:
    found: list[Any] = []
    while True:
        page = client.topic(topic).diff(len(found), limit=1000)
        found += page.records
        if page.caught_up:
            return found


def position(client: Client, pipeline: str) -> str:
    """Where a pipeline is, as the server knows."""
    report = client.pipeline(pipeline).state().report
    return "" if report is None else report.position


def change(history: History, location: str) -> None:
    """Something random happens to a Delta table."""
    match history.chance.choice(["insert", "update", "delete", "merge"]) if history.rows else "insert":
        case "insert":
            rows = pa.Table.from_pylist(history.new_rows(history.chance.randint(1, 5)), schema=deltas.COLUMNS)
            write_deltalake(location, rows, mode="append", schema_mode="merge")
        case "update":
            chosen = ", ".join(map(str, history.raised_ids()))
            DeltaTable(location).update(updates={"n": "n + 1"}, predicate=f"id IN ({chosen})")
        case "delete":
            DeltaTable(location).delete(f"id IN ({', '.join(map(str, history.removed_ids()))})")
        case "merge":
            merged = pa.Table.from_pylist(history.merged_rows(3), schema=deltas.COLUMNS)
            merger = DeltaTable(location).merge(merged, "t.id = s.id", source_alias="s", target_alias="t")
            columns = {name: f"s.{name}" for name in deltas.COLUMNS.names}
            merger.when_matched_update(columns).when_not_matched_insert(columns).execute()


def test_a_delta_table_becomes_topics_and_a_table_again(
    runner: Callable[..., Runner], topics_client: Client, tmp_path: Path
) -> None:
    """Paused, edited, with a new column and another runner in the middle."""
    location, copy = deltas.make(tmp_path / "t"), str(tmp_path / "copy")
    history = History(1)
    for _ in range(5):
        change(history, location)
    sql = topics_client.sql
    sql(f"REGISTER TABLE chat.messages USING delta LOCATION '{location}' KEY (id)")
    for topic, payload in (("full", "full"), ("diff", "diff"), ("keys", "key")):
        sql(f"CREATE TOPIC {topic}")
        sql(f"ALTER TOPIC {topic} ADD SOURCE chat.messages ON INSERT, UPDATE, DELETE FROM SNAPSHOT "
            f"WITH (payload = '{payload}')")  # fmt: skip
    sql(
        f"CREATE PIPELINE back AS MERGE INTO delta.'{copy}' KEY (id) "
        "FROM STREAM full SCHEMA 'id bigint, body string, n bigint, more bigint'"
    )
    first = runner()

    def at(run: Runner) -> Callable[[], bool]:
        wanted = f"version {DeltaTable(location).version()}"
        return lambda: position(topics_client, "routes:chat.messages") == wanted

    until(first, at(first))
    for _ in range(4):
        change(history, location)
    sql('ALTER PIPELINE "routes:chat.messages" PAUSE')
    job = first.jobs["routes:chat.messages"]
    until(first, lambda: job.phase is RunState.PAUSED)
    before = len(records(topics_client, "full"))
    for _ in range(4):
        change(history, location)
    sql('ALTER PIPELINE "routes:chat.messages" RESUME')
    until(first, at(first))
    assert len(records(topics_client, "full")) > before
    # A new column, and another definition of one route: neither moves the position.
    row = {**history.new_rows(1)[0], "more": 7}
    write_deltalake(location, pa.Table.from_pylist([row], schema=WIDER), mode="append", schema_mode="merge")
    history.rows[row["id"]] = row
    sql("ALTER TOPIC keys ADD SOURCE chat.messages ON UPDATE WHERE (id % 2 = 0) WITH (payload = 'key')")
    until(first, at(first))
    for job in first.jobs.values():
        job.end()
    for _ in range(4):
        change(history, location)
    last = runner()
    until(last, at(last))
    head = records(topics_client, "full")[-1].seq
    until(last, lambda: position(topics_client, "back") == f"full/0@{head}")

    wanted = [{"more": None} | row for row in history.content()]
    full, diff, keys = (records(topics_client, topic) for topic in ("full", "diff", "keys"))
    assert [{"more": None} | row for row in replayed(full)] == wanted
    assert [{"more": None} | row for row in replayed(diff)] == wanted
    assert keys_left(keys) == sorted(history.rows)
    assert deltas.content(copy) == wanted == [{"more": None} | row for row in deltas.content(location)]
    ids = [record.data["message_id"] for record in full]
    assert len(set(ids)) == len(ids) and ids == [record.data["message_id"] for record in diff]
    state = topics_client.pipeline("routes:chat.messages").state()
    assert state.condition is PipelineCondition.RUNNING and state.report is not None
    counted = {each.topic: 0 for each in state.report.routes}
    for each in state.report.routes:
        counted[each.topic] += each.records_total
    assert counted == {"full": len(full), "diff": len(diff), "keys": len(keys)}


def test_postgresql_becomes_a_topic(
    runner: Callable[..., Runner], topics_client: Client, pipeline_postgres: str
) -> None:
    history = History(2)
    topics_client.sql("CREATE TOPIC changes")
    with psycopg.connect(pipeline_postgres, autocommit=True) as database:
        database.execute("DROP TABLE IF EXISTS messages CASCADE")
        database.execute("CREATE TABLE messages (id bigint PRIMARY KEY, body text, n bigint)")
        with opened(pipeline_postgres) as outbox:
            outbox.install("public.messages")
        topics_client.sql(
            f"REGISTER TABLE messages USING postgresql LOCATION '{pipeline_postgres}' KEY (id) "
            "WITH (source = 'public.messages')"
        )
        topics_client.sql(
            "ALTER TOPIC changes ADD SOURCE messages ON INSERT, UPDATE, DELETE FROM SNAPSHOT WITH (payload = 'diff')"
        )
        for _ in range(2):
            for _ in range(8):
                _transact(history, database)
            (ended,) = runner(available_now=True).run()
            assert ended.state is RunState.DONE
            assert replayed(records(topics_client, "changes")) == history.content()


def _transact(history: History, database: Any) -> None:
    """A few changes in one transaction, or in one that is rolled back."""
    if history.chance.random() < 0.3:
        with database.transaction(force_rollback=True):
            database.execute("DELETE FROM messages")
            database.execute("INSERT INTO messages VALUES (-1, 'never', 0)")
        return
    with database.transaction():
        for row in history.new_rows(3):
            database.execute("INSERT INTO messages VALUES (%s, %s, %s)", [row["id"], row["body"], row["n"]])
        database.execute("UPDATE messages SET n = n + 1 WHERE id = ANY(%s)", [history.raised_ids()])
        database.execute("DELETE FROM messages WHERE id = ANY(%s)", [history.removed_ids()])


def test_appended_rows_are_there_once_over_restarts(
    runner: Callable[..., Runner], topics_client: Client, tmp_path: Path
) -> None:
    """A runner that goes on, one that follows it, and one that has to do the last batch again."""
    place, copy = tmp_path / "position", str(tmp_path / "copy")
    topics_client.sql("CREATE TOPIC orders")
    topics_client.sql(
        f"CREATE PIPELINE kept WITH (trigger_ms = 100, checkpoint = '{place}') AS APPEND INTO delta.'{copy}' "
        "SELECT value.id AS id, upper(value.sku) AS sku FROM STREAM orders SCHEMA 'id bigint, sku string'"
    )

    def write_and_wait(run: Runner, numbers: range) -> None:
        for number in numbers:
            topics_client.topic("orders").write({"id": number, "sku": "a"})
        until(run, lambda: position(topics_client, "kept") == f"orders/0@{numbers[-1]}")

    first = runner()
    write_and_wait(first, range(1, 3))
    write_and_wait(first, range(3, 5))
    first.jobs["kept"].end()
    second = runner()
    write_and_wait(second, range(5, 7))
    second.jobs["kept"].end()
    # As after a death between the commit in the table and the note that the batch is done.
    last = max(int(note.name) for note in (place / "commits").iterdir() if note.name.isdecimal())
    for note in (place / "commits").glob(f"*{last}*"):
        note.unlink()
    write_and_wait(runner(), range(7, 9))
    assert deltas.content(copy) == [{"id": number, "sku": "A"} for number in range(1, 9)]


def test_rows_that_go_by_a_condition_and_columns_that_the_table_has(
    runner: Callable[..., Runner], topics_server: RunningServer, topics_client: Client, tmp_path: Path
) -> None:
    """One of them from when it was declared on, two records at a time."""
    merged, plain = str(tmp_path / "merged"), deltas.make(tmp_path / "plain", feed=False)
    topics_client.sql("CREATE TOPIC orders")
    topics_client.topic("orders").write({"id": 9, "n": 9})
    topics_server.pass_time(10)
    topics_client.sql(
        "CREATE PIPELINE merged WITH (starting = 'latest', max_records = 2) AS "
        f"MERGE INTO delta.'{merged}' KEY (id) DELETE WHEN (n < 0) SELECT value.id AS id, value.n AS n "
        "FROM STREAM orders SCHEMA 'id bigint, n bigint' WATERMARK (ts) DELAY '1 second'"
    )
    topics_client.sql(f"CREATE PIPELINE plain AS APPEND INTO delta.'{plain}' FROM STREAM orders")
    for number, n in [(1, 5), (2, 6), (3, None), (1, -1)]:
        topics_client.topic("orders").write({"id": number, "n": n, "more": "is left out"})
    ended = runner(available_now=True).run()
    assert {each.state for each in ended} == {RunState.DONE}, ended
    assert deltas.content(merged) == [{"id": 2, "n": 6}, {"id": 3, "n": None}]
    found = sorted((row["id"], row["n"] or 0) for row in deltas.content(plain))
    assert found == [(1, -1), (1, 5), (2, 6), (3, 0), (9, 9)]
    commits = [commit["operation"] for commit in DeltaTable(merged).history()]
    assert commits == ["MERGE", "MERGE", "CREATE TABLE"], "a batch is what may be read at a time"


def test_what_cannot_run_says_why(
    spark: SparkSession, runner: Callable[..., Runner], topics_client: Client, tmp_path: Path
) -> None:
    plain = deltas.make(tmp_path / "plain", feed=False)
    topics_client.sql(f"CREATE TOPIC t; REGISTER TABLE plain USING delta LOCATION '{plain}' KEY (id)")
    topics_client.sql("ALTER TOPIC t ADD SOURCE plain ON INSERT")
    good = deltas.make(tmp_path / "good")
    topics_client.sql(f"REGISTER TABLE good USING delta LOCATION '{good}' KEY (id)")
    topics_client.sql("ALTER TOPIC t ADD SOURCE good ON INSERT")
    topics_client.sql("ALTER TOPIC t ADD SOURCE good ON UPDATE FROM SNAPSHOT WHERE (nope = 1)")
    topics_client.sql("REGISTER TABLE lost USING delta KEY (id) WITH (location_env = 'NO_SUCH_PLACE')")
    topics_client.sql("ALTER TOPIC t ADD SOURCE lost ON INSERT")
    topics_client.sql(
        "CREATE TOPIC s; CREATE PIPELINE odd AS INSERT INTO TOPIC t SELECT nowhere(seq) AS x FROM STREAM s"
    )
    topics_client.sql(f"CREATE PIPELINE bare AS APPEND INTO delta.'{tmp_path / 'none'}' FROM STREAM s")
    ended = {each.pipeline: each for each in runner(available_now=True).run()}
    assert ended["odd"].state is RunState.FAILED and "nowhere" in str(ended["odd"].error)
    assert [line.level for line in topics_client.pipeline("odd").logs()] == ["error"], "it is not tried again"
    assert ended["routes:plain"].state is RunState.FAILED
    assert "set delta.enableChangeDataFeed = true" in str(ended["routes:plain"].error)
    assert "WHERE (nope = 1)" in str(ended["routes:good"].error)
    assert not [query.name for query in spark.streams.active if query.name.startswith("routes:good")], "none goes alone"
    assert "variable NO_SUCH_PLACE, which says where the table is, is not set" in str(ended["routes:lost"].error)
    assert "not there yet, and no columns are known: say STREAM s SCHEMA" in str(ended["bare"].error)
    logs = topics_client.pipeline("routes:good").logs()
    assert logs[-1].level == "error" and "nope" in logs[-1].message
    with pytest.raises(NotFound, match='there is no pipeline "other"; there is bare, odd, routes:good, routes:lost'):
        runner(names=["other"]).run()


def test_a_pipeline_is_one_runners(runner: Callable[..., Runner], topics_client: Client, tmp_path: Path) -> None:
    location = deltas.make(tmp_path / "t")
    topics_client.sql(f"CREATE TOPIC t; REGISTER TABLE a USING delta LOCATION '{location}' KEY (id)")
    topics_client.sql("ALTER TOPIC t ADD SOURCE a ON INSERT")
    one, other = runner(), runner()
    one.turn()
    other.turn()
    assert (one.jobs["routes:a"].phase, other.jobs["routes:a"].phase) == (RunState.RUNNING, None)
    topics_client.sql("ALTER TOPIC t DROP SOURCE a")
    until(one, lambda: not one.jobs)


def test_a_server_that_is_away_a_pipeline_made_anew_and_the_end(
    runner: Callable[..., Runner],
    topics_client: Client,
    topics_server: RunningServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner_module, "ASK_MS", 0)
    clock = SimClock()
    one = runner(clock=clock)

    def look() -> None:
        clock.advance(LOOK_MS)
        one.turn()

    topics_client.sql("CREATE TOPIC s; CREATE TOPIC t")
    topics_client.sql("CREATE PIPELINE p AS INSERT INTO TOPIC t SELECT seq AS first FROM STREAM s")
    look()
    first = one.jobs["p"]
    assert first.phase is RunState.RUNNING
    # The runner looks all the same.
    clock.jump(-3_600_000)
    topics_server.stop()
    look()
    assert one.jobs == {"p": first} and first.phase is RunState.RUNNING, "what runs goes on"
    topics_server.start()
    topics_client.sql("DROP PIPELINE p")
    topics_client.sql("CREATE PIPELINE p AS INSERT INTO TOPIC t SELECT seq AS second FROM STREAM s")
    topics_client.topic("s").write(1)
    look()
    assert one.jobs["p"] is not first
    until(one, lambda: bool(records(topics_client, "t")))
    one.stop()
    (ended,) = one.run()
    assert ended.state is RunState.STOPPED
    report = topics_client.pipeline("p").state().report
    assert report is not None and report.state is RunState.STOPPED
    assert records(topics_client, "t")[0].data == {"second": 1}
