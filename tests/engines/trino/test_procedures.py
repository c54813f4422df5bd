"""Table procedures: compaction, expiry, orphans, statistics, and tables that leave and enter the catalog."""

import pathlib
import urllib.parse

import pytest
from trino.exceptions import TrinoUserError


@pytest.fixture
def scattered(sql, table):
    """The table with seven more files, some of them with deletes."""
    for id in range(10, 16):
        sql(f"INSERT INTO {table} VALUES ({id}, 'sound', {id}.0)")
    sql(f"DELETE FROM {table} WHERE id IN (1, 12)")
    return table


LEFT = [2, 3, 10, 11, 13, 14, 15]


def test_optimize_rewrites_small_files_and_keeps_the_rows(sql, scattered, ids):
    schema, name = scattered.split(".")
    files = f'SELECT content, count(*) FROM {schema}."{name}$files" GROUP BY content'
    before = dict(sql(files))

    sql(f"ALTER TABLE {scattered} EXECUTE optimize(file_size_threshold => '10MB')")

    assert ids(scattered) == LEFT
    assert before[0] > 2
    assert dict(sql(files)) == {0: 2}


def test_optimize_manifests_leaves_one_and_keeps_the_rows(sql, scattered, ids):
    schema, name = scattered.split(".")
    manifests = f'SELECT count(*) FROM {schema}."{name}$manifests" WHERE content = 0'
    assert sql(manifests)[0][0] > 1

    sql(f"ALTER TABLE {scattered} EXECUTE optimize_manifests")

    assert sql(manifests) == [(1,)]
    assert ids(scattered) == LEFT


def test_expired_snapshots_are_gone_and_the_rows_stay(sql, scattered, ids, snapshots):
    old = snapshots(scattered)[0]
    sql(f"ALTER TABLE {scattered} EXECUTE optimize")

    sql(f"ALTER TABLE {scattered} EXECUTE expire_snapshots(retention_threshold => '0s')")

    assert len(snapshots(scattered)) == 1
    assert ids(scattered) == LEFT
    with pytest.raises(TrinoUserError, match=str(old)):
        ids(f"{scattered} FOR VERSION AS OF {old}")


def test_orphans_are_removed_and_nothing_that_is_in_use(sql, scattered, ids, snapshots):
    statement = f"ALTER TABLE {scattered} EXECUTE remove_orphan_files(retention_threshold => '0s')"

    removed = dict(sql(statement))

    assert removed["deleted_files_count"] == 0
    assert removed["active_files_count"] == removed["scanned_files_count"]
    for snapshot in snapshots(scattered):
        sql(f"SELECT count(*) FROM {scattered} FOR VERSION AS OF {snapshot}")
    assert ids(scattered) == LEFT


def test_statistics_are_collected_and_dropped(sql, table):
    distinct = lambda: {row[0]: row[2] for row in sql(f"SHOW STATS FOR {table}")}

    sql(f"ANALYZE {table}")
    assert distinct()["id"] == 3.0
    assert distinct()["place"] == 2.0

    sql(f"ALTER TABLE {table} EXECUTE drop_extended_stats")
    assert distinct()["id"] is None


def test_a_table_taken_out_of_the_catalog_keeps_its_files(sql, schema, table, warehouse):
    name = table.split(".")[1]
    files = [path for (path,) in sql(f'SELECT file_path FROM {schema}."{name}$files"')]

    sql(f"CALL system.unregister_table('{schema}', '{name}')")

    assert sql(f"SHOW TABLES FROM {schema}") == []
    assert len(files) == 2
    if warehouse.scheme == "file":
        assert all(local(file).exists() for file in files)


def local(location):
    return pathlib.Path(urllib.parse.urlsplit(location).path)
