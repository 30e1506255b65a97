"""What the test of a cluster submits: rows through a topic and into a lake, on whatever master it is told."""

from __future__ import annotations

import json
import sys

from topics.spark import connect, disconnect, lake
from topics.spark.launch import session


def main(master: str, url: str, key: str, root: str) -> dict[str, object]:
    with session(master, {"spark.executor.memory": "512m", "spark.sql.shuffle.partitions": "2"}) as spark:
        connect(spark, url, key)
        rows = spark.range(0, 2000, 1, 4).selectExpr("struct(id, 'ä' AS text) AS data", "cast(id AS string) AS tag")
        rows.write.format("topics").option("topic", "numbers").option("jobId", "once").mode("append").save()
        connect(spark, url, key)
        found = spark.sql("SELECT count(*), count(DISTINCT tag), min(seq), max(seq) FROM topics.numbers").first()
        spark.sql("CREATE TOPIC made PARTITIONS 2; INSERT INTO TOPIC made VALUES (:value)", {"value": {"n": 1}})
        taken = spark.sql("CONSUME FROM numbers GROUP g LIMIT 3").collect()
        spark.sql("ACK numbers GROUP g UPTO ?", [taken[-1]["offset"]])
        stands = spark.sql("SELECT committed_offset, lag FROM system.groups JOIN topics.made").first()
        query = lake.archive(spark, root, "numbers", url=url, key=key, available_now=True)
        query.awaitTermination()
        group = [row["payload"] for row in taken] + list(stands or ())
        disconnect(spark)
        return {
            "found": list(found or ()),
            "group": group,
            "lake": lake.state(root).count,
            "failed": str(query.exception() or ""),
        }


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(main(*sys.argv[1:])) + "\n")
