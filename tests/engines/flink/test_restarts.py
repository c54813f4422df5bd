"""Streaming jobs that go on from a checkpoint after a crash, and from a savepoint after an ordered stop."""

ROWS = 20_000
# Slowly, so that the source cannot end before the last restart; what is left then goes fast.
SLOWLY, FAST = 50, 10_000


def test_a_restored_stream_loses_no_row_and_doubles_none(lake, numbers, sink, record):
    job = begin(lake, numbers, sink, SLOWLY)
    lake.wait_for_commits(numbers, 2)
    lake.crash()
    job = begin(lake, numbers, sink, SLOWLY, lake.flink.newest_checkpoint(job))
    lake.wait_for_commits(numbers, 2)
    savepoint = lake.flink.stop_with_savepoint(job)
    lake.flink.wait(begin(lake, numbers, sink, FAST, savepoint))

    assert lake.ids(numbers) == (ROWS, ROWS, 1, ROWS)
    assert lake.files_added_twice(numbers) == []
    assert lake.checkpoints(numbers) == sorted(set(lake.checkpoints(numbers)))
    assert len(writers(lake, numbers)) == 3
    record(f"{sink}-restored", numbers)


def begin(lake, table, sink, per_second, restore=None):
    lake.streaming(sink, restore)
    lake.numbers(ROWS, per_second)
    return lake.start(f"INSERT INTO {table} SELECT id, v FROM numbers")


def writers(lake, table):
    """The jobs that committed: each restart is a new one."""
    return {snapshot["summary"]["flink.job-id"] for snapshot in lake.snapshots(table)}
