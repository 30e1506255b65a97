"""The same question in SQL of the server and in Spark over the same topic has the same answer."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tests.spark.rig import table
from topics.testing.served import RunningServer

# Our text, and Spark's where a function is called otherwise there.
QUESTIONS = [
    ("SELECT count(*) FROM {t}", None),
    ("SELECT partition, count(*), min(seq), max(seq) FROM {t} GROUP BY partition ORDER BY partition", None),
    (
        "SELECT data->>'sku' AS sku, sum(CAST(data->>'n' AS INT)) AS n FROM {t} GROUP BY 1 ORDER BY 1 NULLS FIRST",
        "SELECT get_json_object(data, '$.sku') AS sku, sum(CAST(get_json_object(data, '$.n') AS INT)) AS n FROM {t} "
        "GROUP BY 1 ORDER BY 1 NULLS FIRST",
    ),
    ("SELECT seq, tag FROM {t} WHERE tag = 't3' AND partition = 1 ORDER BY seq", None),
    ("SELECT seq, node FROM {t} WHERE tag LIKE 't1%' AND seq BETWEEN 10 AND 60 ORDER BY partition, seq", None),
    ("SELECT count(*) FROM {t} WHERE NOT (tag = 't1')", None),
    ("SELECT count(*) FROM {t} WHERE tag <> 't1' OR node IS NULL", None),
    ("SELECT a.seq, b.partition FROM {t} a JOIN {t} b ON a.seq = b.seq WHERE a.seq < 4 ORDER BY ALL", None),
    ("SELECT count(*) FROM {t} a CROSS JOIN {t} b WHERE a.seq < 4 AND b.seq > 90 AND b.partition = 1", None),
    ("SELECT seq FROM {t} WHERE seq < 4 UNION ALL SELECT seq FROM {t} WHERE tag = 't2' ORDER BY seq", None),
    ("SELECT tag, count(DISTINCT node) FROM {t} GROUP BY tag HAVING count(*) > 9 ORDER BY tag NULLS FIRST", None),
    (
        "SELECT seq FROM (SELECT seq, row_number() OVER (PARTITION BY partition ORDER BY seq DESC) AS r FROM {t}) "
        "WHERE r <= 2 ORDER BY seq",
        None,
    ),
]


def test_sql_and_spark_agree(spark: SparkSession, topics_server: RunningServer) -> None:
    with topics_server.client() as client:
        orders = client.topic("orders")
        orders.create(partitions=2)
        for partition in (0, 1):
            orders.write_many(
                [
                    {
                        "data": {"sku": f"s{n % 4}", "n": n} if n % 10 else None,
                        "tag": f"t{n % 13}" if n % 7 else None,
                        "node": f"n{n % 3}" if n % 5 else None,
                    }
                    for n in range(100)
                ],
                partition=partition,
            )
        orders.delete(match="t5", partition=1)
        table(spark, topics_server, "orders").createOrReplaceTempView("orders")
        for ours, sparks in QUESTIONS:
            (found,) = client.sql(ours.format(t="orders"))
            expected = [list(row) for row in spark.sql((sparks or ours).format(t="orders")).collect()]
            assert found.rows == expected and found.rows, ours
