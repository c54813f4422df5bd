"""A Spark stream whose server dies and whose answers are lost while another catalog handle keeps its table."""

import time

import spark as sparks
import storm
import streams

ENDS_WITHIN_S = 1500


def test_every_row_arrives_once(spark, node, between, rest, namespace, size, tell, tmp_path):
    table = f"{namespace}.numbers"
    spark.sql(f"CREATE TABLE frazil.{table} (id bigint, v int) USING iceberg")
    between.faults.extend(storm.over(node, size.kills, size.lost, size.calm))
    with sparks.keeping(spark, table) as keeper:
        starts = run(spark, rest, between, table, tmp_path / "checkpoint", size)

    tell(starts=starts, **streams.outcomes(between), **keeper.figures())
    count, distinct, first, last = spark.ids(f"frazil.{table}")
    assert count == distinct == last - first + 1 >= size.rows
    assert spark.files_twice(f"frazil.{table}") == []
    streams.assert_unbroken(metadata(rest, table))


def run(spark, rest, between, table, checkpoint, size):
    """Lets the stream run until the rows are there and the faults are over; how often it was started, as it fails."""
    starts, end = 0, time.monotonic() + ENDS_WITHIN_S
    while between.faults or rows(rest, table) < size.rows:
        assert time.monotonic() < end
        if not spark.ask("streams"):
            starts += 1
            spark.stream(f"stormy.{table}", checkpoint, size.per_second, "1 second")
        time.sleep(0.5)
    spark.ask("stop")
    return starts


def rows(rest, table):
    """How many rows a table's current snapshot counts."""
    found = metadata(rest, table)
    snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in found["snapshots"]}
    current = snapshots.get(found.get("current-snapshot-id"))
    return int(current["summary"]["total-records"]) if current else 0


def metadata(rest, table):
    namespace, name = table.split(".")
    return rest.call("GET", f"{rest.base}/namespaces/{namespace}/tables/{name}")["metadata"]
