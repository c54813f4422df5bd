"""Streams that read from a table what is appended to it."""

from rest import wait_until

ROWS = 3000


def test_a_stream_reads_what_another_stream_appends(lake, namespace, numbers):
    copy = f"{namespace}.copy"
    lake.run(f"CREATE TABLE {copy} (id BIGINT, v INT)")
    lake.streaming("v2")
    lake.numbers(ROWS)
    follow = f"{numbers} /*+ OPTIONS('streaming' = 'true', 'monitor-interval' = '1s') */"
    reader = lake.start(f"INSERT INTO {copy} SELECT id, v FROM {follow}")
    lake.run(f"INSERT INTO {numbers} SELECT id, v FROM numbers")
    wait_until(lambda: rows(lake, copy) >= ROWS, bound_s=120)
    lake.flink.stop_with_savepoint(reader)

    assert lake.ids(copy) == (ROWS, ROWS, 1, ROWS)


def test_a_stream_passes_over_upserts_and_reads_the_next_append(lake, namespace, numbers):
    keyed = f"{namespace}.keyed"
    lake.run(
        f"""CREATE TABLE {keyed} (id BIGINT, v INT, PRIMARY KEY (id) NOT ENFORCED)
            WITH ('format-version' = '2', 'write.upsert.enabled' = 'true')"""
    )
    append = f"INSERT INTO {keyed} /*+ OPTIONS('upsert-enabled' = 'false') */"
    lake.run(f"{append} VALUES (1, 1), (2, 2)")
    lake.streaming("v2")
    follow = "'streaming' = 'true', 'monitor-interval' = '1s', 'starting-strategy' = 'TABLE_SCAN_THEN_INCREMENTAL'"
    reader = lake.start(f"INSERT INTO {numbers} SELECT id, v FROM {keyed} /*+ OPTIONS({follow}) */")
    wait_until(lambda: rows(lake, numbers) == 2, bound_s=120)
    lake.batch()
    lake.run(f"INSERT INTO {keyed} VALUES (2, 200), (3, 300)")
    lake.run(f"{append} VALUES (4, 4)")
    wait_until(lambda: rows(lake, numbers) == 3, bound_s=120)
    lake.flink.stop_with_savepoint(reader)

    assert lake.operations(keyed) == ["append", "overwrite", "append"]
    assert sorted(lake.query(f"SELECT id, v FROM {numbers}")) == [(1, 1), (2, 2), (4, 4)]
    assert sorted(lake.query(f"SELECT id, v FROM {keyed}")) == [(1, 1), (2, 200), (3, 300), (4, 4)]


def rows(lake, table):
    """How many rows a table's newest snapshot counts."""
    snapshots = lake.snapshots(table)
    return int(snapshots[-1]["summary"]["total-records"]) if snapshots else 0
