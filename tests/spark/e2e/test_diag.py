from tests.spark.conftest import *
from tests.spark.rig import table
from topics.testing.served import running_server
def test_x(spark):
    with running_server() as server, server.client() as client:
        orders = client.topic("orders"); orders.create(partitions=2)
        for p in (0,1):
            orders.write_many([{"data": n, "tag": f"t{n % 13}" if n % 7 else None, "node": f"n{n%3}" if n%5 else None} for n in range(100)], partition=p)
        table(spark, server, "orders").createOrReplaceTempView("orders")
        for q in ["SELECT tag, count(DISTINCT node) FROM orders GROUP BY tag HAVING count(*) > 9","SELECT tag, count(*) c FROM orders GROUP BY tag HAVING count(*) > 9","SELECT tag, count(DISTINCT node) FROM orders GROUP BY tag","SELECT tag, count(DISTINCT node), count(*) FROM orders GROUP BY tag"]:
            print(q, [list(r) for r in spark.sql(q).collect()][:4])
        spark.sql("SELECT tag, count(DISTINCT node) FROM orders GROUP BY tag HAVING count(*) > 9").explain(True)
        df=table(spark, server, "orders").cache(); df.count(); df.createOrReplaceTempView("c")
        print("cached", [list(r) for r in spark.sql("SELECT tag, count(DISTINCT node) FROM c GROUP BY tag HAVING count(*) > 9").collect()][:4])
    assert 0
