"""Flink's dynamic sink, two tables and two branches of each, killed and restored while Spark compacts."""

import spark as sparks
import storm
import streams
from lakehouse import options

TABLES = ("even", "odd")
THIRD = "VERSION AS OF 'third'"


def test_every_row_arrives_once_on_its_branch(lake, node, between, spark, namespace, size, tell):
    between.faults.extend(storm.over(node, size.kills, size.lost, size.calm))
    job = begin(lake, namespace, size)
    streams.wait_for_commits(between, 8)
    restore = None
    with sparks.keeping(spark, *(f"{namespace}.{table}" for table in TABLES)) as keeper:
        for _ in range(size.crashes):
            streams.wait_for_commits(between, 8)
            restore = streams.restore_point(lake, job, restore)
            lake.crash()
            job = begin(lake, namespace, size, restore)
        streams.wait_for_end(lake, job)

    tell(**streams.outcomes(between), **keeper.figures())
    assert between.faults == []
    sides = [f"frazil.{namespace}.{table} {branch}" for table in TABLES for branch in ("", THIRD)]
    routed = " UNION ALL ".join(f"SELECT id FROM {side}" for side in sides)
    assert spark.ids(f"({routed})") == (size.rows, size.rows, 1, size.rows)
    for table in TABLES:
        assert spark.ids(f"frazil.{namespace}.{table}")[0] == size.rows // 3
        assert spark.ids(f"frazil.{namespace}.{table} {THIRD}")[0] == size.rows // 6
        assert spark.files_twice(f"frazil.{namespace}.{table}") == []
        for branch in ("main", "third"):
            streams.assert_unbroken(lake.metadata(f"{namespace}.{table}"), branch)


def begin(lake, namespace, size, restore=None):
    streams.open_session(lake, "v2", restore)
    lake.numbers(size.rows, per_second=size.per_second)
    sink = {"connector": "iceberg", "catalog-name": "frazil", "use-dynamic-iceberg-sink": "true"}
    sink |= {"dynamic-record-generator-impl": "frazil.flink.RouteByRemainder", **lake.catalog()}
    del sink["type"]
    lake.run(f"CREATE TEMPORARY TABLE routed (target STRING, id BIGINT, v INT) WITH ({options(sink)})")
    return lake.start(f"INSERT INTO routed SELECT '{namespace}', id, v FROM numbers")
