"""Several streams that commit to one table at the same time: each conflict ends with both commits in the table."""

ROWS = 2000


def test_two_streams_append_to_one_table(lake, numbers):
    jobs = [begin(lake, numbers, sink, first) for sink, first in (("classic", 0), ("v2", ROWS))]
    for job in jobs:
        lake.flink.wait(job)

    assert lake.ids(numbers) == (2 * ROWS, 2 * ROWS, 1, 2 * ROWS)
    assert lake.files_added_twice(numbers) == []
    assert len({snapshot["summary"]["flink.job-id"] for snapshot in lake.snapshots(numbers)}) == 2


def test_a_stream_and_an_overwriting_batch_share_a_table(lake, namespace):
    table = f"{namespace}.shared"
    lake.run(f"CREATE TABLE {table} (id BIGINT, v INT, side STRING) PARTITIONED BY (side)")
    lake.streaming("v2")
    lake.numbers(ROWS, per_second=500)
    job = lake.start(f"INSERT INTO {table} SELECT id, v, 'stream' FROM numbers")
    for round in range(3):
        lake.batch()
        lake.run(f"INSERT OVERWRITE {table} PARTITION (side = 'batch') SELECT CAST(0 AS BIGINT), {round}")
    lake.flink.wait(job)

    assert lake.ids(table)[:2] == (ROWS + 1, ROWS + 1)
    assert lake.query(f"SELECT v FROM {table} WHERE side = 'batch'") == [(2,)]


def begin(lake, table, sink, first):
    lake.streaming(sink)
    lake.numbers(ROWS, per_second=500)
    return lake.start(f"INSERT INTO {table} SELECT id + {first}, v FROM numbers")
