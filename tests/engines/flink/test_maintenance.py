"""Maintenance that the v2 sink does after its own commits, while the stream goes on."""

from lakehouse import options
from rest import wait_until

# More than any run gets to; not many more, as what is left is part of each checkpoint.
ROWS = 100_000
OFTEN = {
    "flink-maintenance.rate-limit-seconds": 1,
    "flink-maintenance.lock-check-delay-seconds": 1,
}


def begin(lake, table, settings):
    lake.streaming("v2")
    lake.numbers(ROWS, per_second=200)
    return lake.start(f"INSERT INTO {table} /*+ OPTIONS({options(settings | OFTEN)}) */ SELECT id, v FROM numbers")


def assert_each_row_once(lake, table):
    count, distinct, *_ = lake.ids(table)
    assert count == distinct == int(lake.snapshots(table)[-1]["summary"]["total-records"])
    assert lake.files_added_twice(table) == []


def test_files_are_rewritten_between_the_commits_of_a_stream(lake, numbers, record):
    rewrite = {"flink-maintenance.rewrite.enabled": "true", "flink-maintenance.rewrite.schedule.commit-count": 3}
    job = begin(lake, numbers, rewrite)
    wait_until(lambda: "append" in after_first_replace(lake.operations(numbers)), bound_s=180)
    lake.flink.stop_with_savepoint(job)

    assert_each_row_once(lake, numbers)
    record("rewrite", numbers)


def after_first_replace(operations):
    return operations[operations.index("replace") :] if "replace" in operations else []


def test_snapshots_are_expired_between_the_commits_of_a_stream(lake, numbers):
    expire = {
        "flink-maintenance.expire-snapshots.enabled": "true",
        "flink-maintenance.expire-snapshots.schedule.commit-count": 3,
        "flink-maintenance.expire-snapshots.max-snapshot-age-seconds": 1,
        "flink-maintenance.expire-snapshots.retain-last": 2,
    }
    job = begin(lake, numbers, expire)
    wait_until(lambda: lake.snapshots(numbers))
    first = lake.snapshots(numbers)[0]["snapshot-id"]
    wait_until(lambda: first not in {snapshot["snapshot-id"] for snapshot in lake.snapshots(numbers)}, bound_s=180)
    lake.flink.stop_with_savepoint(job)

    assert_each_row_once(lake, numbers)
