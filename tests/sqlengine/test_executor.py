from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import topics
from tests.client.rig import on_loop
from tests.sqlengine.rig import embedded, engine_of, host_of
from topics import SqlResult, errors
from topics.errors import Forbidden
from topics.sqlengine.executor import Executor
from topics.sqlengine.result import as_values


async def one(client: topics.Client, text: str, *params: object) -> SqlResult:
    (result,) = await client.sql(text, list(params))
    return result


async def rows(client: topics.Client, text: str, *params: object) -> list[list[Any]]:
    return (await one(client, text, *params)).rows


@on_loop
async def test_a_topic_is_created_changed_shown_and_dropped(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        made = await one(
            client,
            "CREATE TOPIC app.orders PARTITIONS 2 ALIAS o WITH (retention_seconds = 60, retention_max_bytes = 1000)",
        )
        assert (made.columns, made.rows, made.message) == ([], [], "topic app.orders created")
        config = (await client.topic("o").state()).config
        assert (config.partitions, config.ttl_ms, config.cap_bytes, config.alias) == (2, 60_000, 1000, "o")
        with pytest.raises(errors.NameTaken, match="is there already"):
            await client.sql("CREATE TOPIC app.orders")
        assert (await one(client, "CREATE TOPIC IF NOT EXISTS o")).message == "topic app.orders is there already"
        await client.sql("ALTER TOPIC o SET (retention_seconds = 0, priority = -5, protect_groups = ('a', 'b'))")
        described = dict(await rows(client, "DESCRIBE TOPIC o"))
        assert (described["name"], described["ttl_ms"], described["cap_bytes"]) == ("app.orders", 0, 1000)
        assert (described["priority"], described["protect_groups"]) == (-5, ["a", "b"])
        await client.sql("CREATE TOPIC stock")
        assert await rows(client, "SHOW TOPICS") == [
            ["app.orders", "o", "log", 2, 0, 0],
            ["stock", None, "log", 1, 0, 0],
        ]
        assert await rows(client, "SHOW TOPICS LIKE 's_ock'") == [["stock", None, "log", 1, 0, 0]]
        assert await rows(client, "SHOW TOPICS LIKE 's.%'") == []
        assert (await one(client, "DROP TOPIC o")).message == "topic app.orders dropped"
        with pytest.raises(errors.TopicNotFound):
            await client.sql("DROP TOPIC app.orders")
        assert (await one(client, "DROP TOPIC IF EXISTS app.orders")).message == "there is no topic app.orders"


@on_loop
async def test_records_are_inserted_as_one_write(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        made = await rows(
            client,
            """INSERT INTO TOPIC orders (data, tag, node, meta) VALUES
               ('{"sku": "A1"}', 'order-1', 'n', '{"k": "v"}'), (?, NULL, NULL, NULL), (NULL, 'x', NULL, ?),
               (-1.5, NULL, 'm', NULL)""",
            ["any", {"value": 1}],
            {"k": "w"},
        )
        assert made == [["orders", 0, 1, 4]]
        found = (await client.topic("orders").diff()).records
        assert [(r.data, r.tag, r.node, r.meta) for r in found] == [
            ({"sku": "A1"}, "order-1", "n", {"k": "v"}),
            (["any", {"value": 1}], None, None, None),
            (None, "x", None, {"k": "w"}),
            (-1.5, None, "m", None),
        ]
        with pytest.raises(errors.InvalidRequest, match=r"meta"):
            await client.sql("INSERT INTO TOPIC orders (data, meta) VALUES (1, '{}'), (2, '[1]')")
        assert (await client.topic("orders").state()).head_seq == 4
        await client.sql("CREATE TOPIC parts PARTITIONS 8; INSERT INTO TOPIC parts KEY 'ann' VALUES (1)")
        written = await client.topic("parts").write(2, key="ann")
        assert written.first_seq == 2
        assert await rows(client, "INSERT INTO TOPIC parts PARTITION 7 VALUES (3)") == [["parts", 7, 1, 1]]
        assert (await one(client, "CLEAR TOPIC parts")).message == "3 records of topic parts deleted"
        assert await rows(client, "SELECT count(*) FROM parts") == [[0]]


@on_loop
async def test_a_group_consumes_and_acks(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        await client.topic("orders").write_many([{"data": n, "tag": f"t{n}" if n else None} for n in range(4)])
        got = await one(client, "CONSUME FROM orders GROUP 'billing' FROM EARLIEST LIMIT 2")
        assert [column.name for column in got.columns] == (
            ["topic", "partition", "offset", "key", "op", "payload", "payload_mode", "source_table", "ts", "message_id"]
        )
        ts = (await client.topic("orders").diff()).records[0].ts
        assert got.rows == [
            ["orders", 0, 1, None, None, 0, None, None, ts, "orders/0/1/1"],
            ["orders", 0, 2, "t1", None, 1, None, None, ts, "orders/0/1/2"],
        ]
        second = await rows(client, "CONSUME FROM orders GROUP billing CONSUMER c2 LIMIT 10")
        assert [row[2] for row in second] == [3, 4]
        acked = await one(client, "ACK orders GROUP 'billing' CONSUMER c2 UPTO OFFSET 4")
        assert [column.name for column in acked.columns] == ["topic", "group_id", "partition", "committed_offset"]
        assert acked.rows == [["orders", "billing", 0, 0]]
        assert await rows(client, "ACK orders GROUP 'billing' PARTITION 0 UPTO OFFSET 2") == [
            ["orders", "billing", 0, 4]
        ]
        (group,) = (await one(client, "SHOW GROUPS ON orders")).dicts()
        assert (group["group_id"], group["committed_offset"], group["lag"], group["claimed"]) == ("billing", 4, 0, 0)
        assert await rows(client, "SELECT group_id, last_acked_offset FROM system.topic_offsets") == [["billing", 4]]
        assert await rows(client, "RESET GROUP billing ON orders TO OFFSET 3") == [["orders", "billing", 0, 2]]
        assert [row[2] for row in await rows(client, "CONSUME FROM orders GROUP billing")] == [3, 4]
        await client.sql("DROP GROUP billing ON orders")
        with pytest.raises(errors.GroupNotFound):
            await client.sql("DROP GROUP billing ON orders")
        assert await rows(client, "SHOW GROUPS") == []


@on_loop
async def test_a_group_gives_back_keeps_and_rests(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        await client.topic("orders").write_many([{"data": n} for n in range(6)])
        await client.sql("CONSUME FROM orders GROUP g CONSUMER c LIMIT 4")
        given = await one(client, "NACK orders GROUP g FROM OFFSET 3 UPTO OFFSET 4")
        assert [column.name for column in given.columns] == (
            ["topic", "group_id", "partition", "nacked", "committed_offset"]
        )
        assert given.rows == [["orders", "g", 0, 2, 0]]
        (extended,) = (await one(client, "EXTEND orders GROUP g CONSUMER c UPTO OFFSET 2 FOR 90000")).dicts()
        (held,) = [each for each in (await client.topic("orders").group("g").state()).ranges if each.claim_id]
        assert (extended["extended"], held.first_seq, held.last_seq) == (2, 1, 2)
        assert datetime.fromisoformat(extended["deadline"]).timestamp() * 1000 == pytest.approx(held.deadline)
        assert (await one(client, "EXTEND orders GROUP g UPTO OFFSET 6")).rows == [["orders", "g", 0, 0, None]]
        again = await rows(client, "CONSUME FROM orders GROUP g LIMIT 2")
        assert [row[2] for row in again] == [3, 4], "what was given back comes first"
        await client.sql("NACK orders GROUP g UPTO OFFSET 4 DELAY 86400000")
        assert [row[2] for row in await rows(client, "CONSUME FROM orders GROUP g")] == [5, 6], "and this one later"
        assert (await one(client, "PAUSE GROUP g ON orders")).message == "group g of topic orders paused"
        assert await rows(client, "SELECT paused FROM system.groups") == [[True]]
        assert (await one(client, "RESUME GROUP g ON orders")).message == "group g of topic orders resumed"
        assert await rows(client, "ACK orders GROUP new UPTO OFFSET 2") == [["orders", "new", 0, 2]]
        assert [row[2] for row in await rows(client, "CONSUME FROM orders GROUP new LIMIT 1")] == [3]
        for text in ("NACK orders GROUP h UPTO OFFSET 1", "EXTEND orders GROUP h UPTO 1", "PAUSE GROUP h ON orders"):
            with pytest.raises(errors.GroupNotFound):
                await client.sql(text)


@on_loop
async def test_consume_without_a_group_only_reads(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        orders = client.topic("orders")
        await orders.create(partitions=2)
        await orders.write_many([{"data": n} for n in range(3)], partition=0)
        await orders.write_many([{"data": n} for n in range(2)], partition=1)
        everything = [[0, 1], [0, 2], [0, 3], [1, 1], [1, 2]]
        for _ in range(2):
            assert [row[1:3] for row in await rows(client, "CONSUME FROM orders")] == everything
        assert [row[1:3] for row in await rows(client, "CONSUME FROM orders PARTITION 1 FROM 2")] == [[1, 2]]
        assert await rows(client, "CONSUME FROM orders FROM LATEST") == []
        assert len(await rows(client, "CONSUME FROM orders LIMIT 4")) == 4
        assert [row[1:3] for row in await rows(client, "CONSUME FROM orders LIMIT 3")] == everything[:3]
        assert await rows(client, "SHOW GROUPS") == []
        with pytest.raises(errors.InvalidRequest, match="partitions 0 to 1"):
            await client.sql("CONSUME FROM orders PARTITION 2")


@on_loop
async def test_a_change_record_is_taken_out_of_its_envelope(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        change = {
            "source_table": "chat.messages",
            "op": "update",
            "payload_mode": "diff",
            "payload": {"text": "hi"},
            "key": {"id": 7},
            "ts": 5,
            "message_id": "m1",
        }
        meta = {"content-type": "application/vnd.topics.change+json"}
        await client.topic("t").write_many([{"data": change, "meta": meta}, {"data": {"op": "x"}, "meta": meta}])
        (first, second) = await rows(client, "CONSUME FROM t")
        assert first == ["t", 0, 1, {"id": 7}, "update", {"text": "hi"}, "diff", "chat.messages", 5, "m1"]
        assert second[3:8] == [None, None, {"op": "x"}, None, None]


@on_loop
async def test_what_was_lost_is_told(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        orders = client.topic("orders")
        await orders.create(cap_records=2)
        await client.sql("CONSUME FROM orders GROUP g FROM EARLIEST")
        await orders.write_many([{"data": n} for n in range(5)])
        result = await one(client, "CONSUME FROM orders GROUP g")
        assert result.tombstone is not None
        assert (result.tombstone.gap_from, result.tombstone.gap_to, result.tombstone.reason) == (1, 3, "cap")
        assert [row[2] for row in result.rows] == [4, 5]
        plain = await one(client, "CONSUME FROM orders FROM 1")
        assert plain.tombstone is not None and plain.tombstone.gap_to == 3


@on_loop
async def test_sources_are_stored_and_shown(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        await client.sql(
            "REGISTER TABLE chat.messages USING delta LOCATION '/d' KEY (id); "
            "CREATE TOPIC changes ALIAS c; ALTER TOPIC c ADD SOURCE chat.messages ON INSERT, DELETE "
            "WHERE (is_visible = true AND channel_id = 42) PARTITION BY (user_id) WITH (payload = 'full')"
        )
        full = ["full", "is_visible = true AND channel_id = 42", "user_id"]
        shown = [["changes", "chat.messages", "delete", *full], ["changes", "chat.messages", "insert", *full]]
        rest = ["now", None, None, None, None, 0, 0]
        shown = [[*row, *rest] for row in shown]
        assert await rows(client, "SHOW ROUTES") == shown
        assert await rows(client, "SELECT * FROM system.topic_routes ORDER BY op") == shown
        await client.sql("ALTER TOPIC changes ADD SOURCE chat.messages ON INSERT")
        assert await rows(client, "SHOW ROUTES ON c") == [
            shown[0],
            ["changes", "chat.messages", "insert", "key", None, None, *rest],
        ]
        await client.sql("ALTER TOPIC c SET (ttl_ms = 5)")
        assert len(await rows(client, "SHOW ROUTES")) == 2
    async with topics.open(tmp_path) as client:
        await client.sql("ALTER TOPIC c DROP SOURCE chat.messages ON INSERT")
        assert await rows(client, "SHOW ROUTES") == shown[:1]
        with pytest.raises(errors.NotFound, match="no source"):
            await client.sql("ALTER TOPIC c DROP SOURCE chat.messages ON UPDATE")
        await client.sql("ALTER TOPIC c DROP SOURCE chat.messages")
        with pytest.raises(errors.NotFound, match="no source"):
            await client.sql("ALTER TOPIC c DROP SOURCE chat.messages")
        assert await rows(client, "SHOW ROUTES") == []


@on_loop
async def test_nothing_is_done_before_all_is_understood(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        with pytest.raises(errors.InvalidSql) as refused:
            await client.sql("CREATE TOPIC a; CREATE TOPIC b; CRATE TOPIC c")
        assert refused.value.detail["statement"] == 3
        assert await rows(client, "SHOW TOPICS") == []
        with pytest.raises(errors.NameTaken) as taken:
            await client.sql("CREATE TOPIC a; CREATE TOPIC a; CREATE TOPIC b")
        assert taken.value.detail["statement"] == 2
        assert [row[0] for row in await rows(client, "SHOW TOPICS")] == ["a"]


@on_loop
async def test_what_was_done_is_not_done_again_because_the_rest_has_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with topics.open(tmp_path) as client:
        engine = engine_of(client)
        submit, count = engine.submit, 0

        def full_at_the_second(command: Any) -> Any:
            nonlocal count
            count += 1
            if count == 2:
                raise errors.Throttled("the disk is behind", retry_after_ms=1)
            return submit(command)

        monkeypatch.setattr(engine, "submit", full_at_the_second)
        with pytest.raises(errors.ScriptInterrupted) as interrupted:
            await client.sql("INSERT INTO TOPIC a VALUES (1); INSERT INTO TOPIC a VALUES (2)")
        assert interrupted.value.detail == {"statement": 2, "cause": "throttled"}
        count = 1
        with pytest.raises(errors.Throttled):
            await client.sql("INSERT INTO TOPIC a VALUES (2); SHOW TOPICS")
        assert (await client.topic("a").state()).head_seq == 1


@on_loop
async def test_explain_does_nothing(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        assert await rows(client, "EXPLAIN CREATE TOPIC a ALIAS b") == [
            ["statement", "CREATE TOPIC a WITH (alias = 'b')"],
            ["needs", "admin"],
            ["touches", "topic a"],
            ["touches", "alias b"],
        ]
        assert await rows(client, "SHOW TOPICS") == []


class Restricted:
    """Scopes and a prefix, as a key has them."""

    owner = "restricted"

    def __init__(self, *scopes: str) -> None:
        self._scopes = set(scopes)

    def need(self, scopes: Iterable[str]) -> None:
        if missing := set(scopes) - self._scopes:
            raise Forbidden(f"lacks {sorted(missing)}")

    def touch(self, name: str, field: str) -> None:
        if not self.may_touch(name):
            raise Forbidden(f"{field} {name}")

    def may_touch(self, name: str) -> bool:
        return name.startswith("mine")


MINE = [
    ("CREATE TOPIC mine2", "admin"),
    ("ALTER TOPIC mine SET (ttl_ms = 1)", "admin"),
    ("REGISTER TABLE minetable USING delta LOCATION '/d' KEY (id)", "admin"),
    ("ALTER TOPIC mine ADD SOURCE minetable ON INSERT", "admin"),
    ("DESCRIBE TABLE minetable", "read"),
    ('ALTER PIPELINE "routes:minetable" PAUSE', "admin"),
    ("ALTER TOPIC mine DROP SOURCE minetable", "admin"),
    ("CREATE PIPELINE minepipe AS INSERT INTO TOPIC mine3 SELECT tag FROM STREAM mine", "admin"),
    ("ALTER PIPELINE minepipe PAUSE", "admin"),
    ("DESCRIBE PIPELINE minepipe", "read"),
    ("DROP PIPELINE minepipe", "admin"),
    ("UNREGISTER TABLE minetable", "admin"),
    ("CLEAR TOPIC mine", "delete"),
    ("DROP TOPIC mine", "admin delete"),
    ("INSERT INTO TOPIC mine VALUES (1)", "write"),
    ("CONSUME FROM mine", "read"),
    ("CONSUME FROM mine GROUP g", "read write"),
    ("ACK mine GROUP g UPTO 1", "read write"),
    ("RESET GROUP g ON mine TO EARLIEST", "read write"),
    ("DROP GROUP g ON mine", "read write"),
    ("SHOW TOPICS", "read"),
    ("SHOW GROUPS ON mine", "read"),
    ("DESCRIBE TOPIC mine", "read"),
    ("SELECT * FROM mine", "read"),
    ("SELECT 1", "read"),
    ("EXPLAIN DROP TOPIC mine", "read"),
]
THEIRS = [
    "CREATE TOPIC theirs",
    "CREATE TOPIC mine2 ALIAS theirs2",
    "CREATE TOPIC mine2 WITH (dead_letter = 'theirs')",
    "ALTER TOPIC mine SET (alias = 'theirs2')",
    "ALTER TOPIC theirs ADD SOURCE minetable ON INSERT",
    "ALTER TOPIC mine ADD SOURCE theirs ON INSERT",
    "ALTER TOPIC theirs DROP SOURCE minetable",
    "REGISTER TABLE theirs USING delta LOCATION '/d' KEY (id)",
    "UNREGISTER TABLE theirs",
    "DESCRIBE TABLE theirs",
    "CREATE PIPELINE theirs AS INSERT INTO TOPIC mine2 SELECT tag FROM STREAM mine",
    "CREATE PIPELINE minepipe AS INSERT INTO TOPIC theirs SELECT tag FROM STREAM mine",
    "CREATE PIPELINE minepipe AS INSERT INTO TOPIC mine2 SELECT tag FROM STREAM theirs",
    "CREATE PIPELINE minepipe AS INSERT INTO TOPIC mine2 SELECT m.tag FROM STREAM mine m JOIN theirs",
    'ALTER PIPELINE "routes:theirs" PAUSE',
    "DROP PIPELINE theirs",
    "CLEAR TOPIC theirs",
    "DROP TOPIC theirs",
    "INSERT INTO TOPIC theirs VALUES (1)",
    "CONSUME FROM theirs GROUP g",
    "ACK theirs GROUP g UPTO 1",
    "RESET GROUP g ON theirs TO EARLIEST",
    "DROP GROUP g ON theirs",
    "SHOW GROUPS ON theirs",
    "SHOW ROUTES ON theirs",
    "DESCRIBE TOPIC theirs",
    "SELECT * FROM theirs",
    "SELECT * FROM mine WHERE seq IN (SELECT seq FROM theirs)",
    "WITH mine2 AS (SELECT * FROM theirs) SELECT * FROM mine2",
    "SELECT (SELECT max(seq) FROM theirs)",
    "EXPLAIN SELECT * FROM theirs",
    "INSERT INTO TOPIC mine VALUES (1); INSERT INTO TOPIC theirs VALUES (1)",
]


@on_loop
async def test_every_statement_needs_its_scopes_and_every_name_its_prefix(tmp_path: Path) -> None:
    async with topics.open(tmp_path) as client:
        transport = embedded(client)
        executor = Executor(host_of(client), transport._settings, transport._limits)
        await client.sql("CREATE TOPIC mine; CREATE TOPIC theirs; INSERT INTO TOPIC theirs VALUES (1)")
        for text, scopes in MINE:
            for missing in scopes.split():
                held = {"read", "write", "delete", "admin"} - {missing}
                with pytest.raises(Forbidden, match=missing):
                    await executor.run(text, (), Restricted(*held))
        for text in THEIRS:
            with pytest.raises(Forbidden, match="theirs"):
                await executor.run(text, (), Restricted("read", "write", "delete", "admin"))
        assert (await client.topic("mine").state()).head_seq == 0
        every = "SHOW TOPICS; SELECT DISTINCT topic_id FROM system.topics; SELECT topic_id FROM system.partitions"
        for result in as_values(await executor.run(every, (), Restricted("read"))):
            assert [row[0] for row in result.rows] == ["mine"]
        for name, target in (("minepipe", "mine2"), ("minepipe2", "theirs"), ("theirpipe", "mine2")):
            await client.sql(f"CREATE PIPELINE {name} AS INSERT INTO TOPIC {target} SELECT tag FROM STREAM mine")
        listed = "SHOW PIPELINES; SELECT pipeline_id FROM system.pipelines"
        for result in as_values(await executor.run(listed, (), Restricted("read"))):
            assert [row[0] for row in result.rows] == ["minepipe"], "all names of a pipeline have to be theirs"
        await executor.close()
        with pytest.raises(errors.ShuttingDown):
            await executor.run("SELECT 1", (), Restricted("read"))
