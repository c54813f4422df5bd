"""A Flink job with a checkpoint a second, whose server dies and whose answers are lost while Spark keeps the table.

In the end every key is there once, with the value that was written last.
"""

import pytest
import spark as sparks
import storm
import streams
from lakehouse import SINKS

# Where a client that knows no idempotency keys hears no answer, its job fails and looks for its commit when it is back.
# The others send the commit again.
KINDS = {"append": False, "upsert": True}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sink", SINKS)
def test_every_key_arrives_once(lake, node, between, spark, namespace, size, tell, sink, kind):
    table = f"{namespace}.numbers"
    keys = size.rows // 4 if kind == "upsert" else size.rows
    make(spark, table, kind)
    before, between.keys = node.kills, KINDS[kind]
    streams.open_session(lake, sink)
    lake.numbers(size.rows, per_second=size.per_second)
    between.faults.extend(storm.over(node, size.kills, size.lost, size.calm))
    with sparks.keeping(spark, table) as keeper:
        job = lake.start(f"INSERT INTO frazil.{table} SELECT MOD(id, {keys}), id FROM numbers")
        streams.wait_for_end(lake, job)

    tell(kills=node.kills - before, **streams.outcomes(between), **keeper.figures())
    assert between.faults == []
    assert spark.ids(f"frazil.{table}") == (keys, keys, 0, keys - 1)
    # The ids that share a remainder are written in order, so the greatest of them is the last.
    last = f"CASE WHEN id = 0 THEN {size.rows} ELSE {size.rows - keys} + id END"
    assert spark.sql(f"SELECT count(*) FROM frazil.{table} WHERE v <> {last}") == [(0,)]
    assert spark.files_twice(f"frazil.{table}") == []
    streams.assert_unbroken(lake.metadata(table))


def make(spark, table, kind):
    if kind == "append":
        spark.sql(f"CREATE TABLE frazil.{table} (id bigint, v bigint) USING iceberg")
        return
    spark.sql(
        f"""CREATE TABLE frazil.{table} (id bigint NOT NULL, v bigint) USING iceberg
            TBLPROPERTIES ('write.upsert.enabled' = 'true', 'frazil.commit.rebase' = 'streaming')"""
    )
    spark.sql(f"ALTER TABLE frazil.{table} SET IDENTIFIER FIELDS id")
