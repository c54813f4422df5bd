"""Streaming jobs that go on from a checkpoint after a crash, and from a savepoint after an ordered stop."""

from rest import wait_until

ROWS = 7000


def test_a_restored_stream_loses_no_row_and_doubles_none(lake, numbers, sink, record):
    job = begin(lake, numbers, sink)
    wait_for_commits(lake, numbers, 2)
    lake.crash()
    job = begin(lake, numbers, sink, lake.flink.newest_checkpoint(job))
    wait_for_commits(lake, numbers, 2)
    savepoint = lake.flink.stop_with_savepoint(job)
    lake.flink.wait(begin(lake, numbers, sink, savepoint))

    assert lake.ids(numbers) == (ROWS, ROWS, 1, ROWS)
    assert lake.files_added_twice(numbers) == []
    assert lake.checkpoints(numbers) == sorted(set(lake.checkpoints(numbers)))
    assert len(writers(lake, numbers)) == 3
    record(f"{sink}-restored", numbers)


def begin(lake, table, sink, restore=None):
    lake.streaming(sink, restore)
    lake.numbers(ROWS, per_second=500)
    return lake.start(f"INSERT INTO {table} SELECT id, v FROM numbers")


def wait_for_commits(lake, table, count):
    """Waits until the table has that many more snapshots."""
    there = len(lake.snapshots(table))
    wait_until(lambda: len(lake.snapshots(table)) >= there + count)


def writers(lake, table):
    """The jobs that committed: each restart is a new one."""
    return {snapshot["summary"]["flink.job-id"] for snapshot in lake.snapshots(table)}
