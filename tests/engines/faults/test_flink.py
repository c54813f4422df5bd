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
    make(spark, table, kind)
    before, between.keys = node.kills, KINDS[kind]
    between.faults.extend(storm.over(node, size.kills, size.lost, size.calm))
    written = 0
    with sparks.keeping(spark, table) as keeper:
        # One job, and a further one only where the rows of the first did not last for all faults.
        while written == 0 or between.faults:
            key = f"MOD(id, {keys_of(size)})" if kind == "upsert" else f"id + {written}"
            run(lake, sink, size, f"INSERT INTO frazil.{table} SELECT {key}, id + {written} FROM numbers")
            written += size.rows

    tell(rows=written, kills=node.kills - before, **streams.outcomes(between), **keeper.figures())
    keys = keys_of(size) if kind == "upsert" else written
    assert spark.ids(f"frazil.{table}") == (keys, keys, 0, keys - 1)
    # The values of a key are written in order, so the greatest of them is the last.
    assert spark.sql(f"SELECT count(*) FROM frazil.{table} WHERE v <> {written - keys} + id") == [(0,)]
    assert spark.files_twice(f"frazil.{table}") == []
    streams.assert_unbroken(lake.metadata(table))


def keys_of(size):
    """The keys of an upsert: each is written four times in a job."""
    return size.rows // 4


def run(lake, sink, size, insert):
    streams.open_session(lake, sink)
    lake.numbers(size.rows, per_second=size.per_second, first=0)
    streams.wait_for_end(lake, lake.start(insert))


def make(spark, table, kind):
    if kind == "append":
        spark.sql(f"CREATE TABLE frazil.{table} (id bigint, v bigint) USING iceberg")
        return
    spark.sql(
        f"""CREATE TABLE frazil.{table} (id bigint NOT NULL, v bigint) USING iceberg
            TBLPROPERTIES ('write.upsert.enabled' = 'true', 'frazil.commit.rebase' = 'streaming')"""
    )
    spark.sql(f"ALTER TABLE frazil.{table} SET IDENTIFIER FIELDS id")
