"""A stream without rows: it still says how far it has come, with every tenth checkpoint."""

from rest import wait_until


def test_an_idle_stream_commits_its_position(lake, numbers, record):
    lake.streaming("v2")
    lake.numbers(20_000, per_second=50)
    job = lake.start(f"INSERT INTO {numbers} SELECT id, v FROM numbers WHERE id <= 100")
    wait_until(lambda: empty(lake, numbers), bound_s=180)
    lake.flink.stop_with_savepoint(job)

    assert lake.ids(numbers) == (100, 100, 1, 100)
    assert lake.checkpoints(numbers) == sorted(set(lake.checkpoints(numbers)))
    record("v2-idle", numbers)


def empty(lake, table):
    """The snapshots that added nothing."""
    return [snapshot for snapshot in lake.snapshots(table) if "added-data-files" not in snapshot["summary"]]
