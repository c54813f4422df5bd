"""Iceberg's maintenance procedures, each judged by what it leaves behind."""

import os
import pathlib
import time
import urllib.parse

import pytest
from rest import files_below

TEN_DAYS_S = 10 * 24 * 3600


@pytest.fixture
def call(sql, namespace):
    """Calls a procedure on the table of readings."""
    return lambda procedure, arguments="": sql(
        f"CALL frazil.system.{procedure}(table => '{namespace}.readings'{', ' + arguments if arguments else ''})"
    )


@pytest.fixture
def scattered(sql, table):
    """The table of readings with a row per file, and a deleted row kept in a delete file."""
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    for id in range(10, 15):
        sql(f"INSERT INTO {table} VALUES ({id}, 'sound', {id})")
    sql(f"DELETE FROM {table} WHERE id = 1")
    return table


ROWS = [2, 3, 10, 11, 12, 13, 14]


def test_rewrite_data_files_joins_small_files(sql, scattered, call, ids):
    before = sql(f"SELECT count(*) FROM {scattered}.data_files")[0][0]

    rewritten, added = call("rewrite_data_files", "options => map('rewrite-all', 'true')")[0][:2]

    assert (rewritten, added) == (before, 2)
    assert sql(f"SELECT count(*) FROM {scattered}.data_files") == [(2,)]
    assert sql(f"SELECT operation FROM {scattered}.snapshots ORDER BY committed_at DESC LIMIT 1") == [("replace",)]
    assert ids(scattered) == ROWS


def test_rewrite_data_files_sorts_where_it_is_told(sql, scattered, call, ids):
    call("rewrite_data_files", "strategy => 'sort', sort_order => 'id DESC', options => map('rewrite-all', 'true')")

    assert ids(scattered) == ROWS


def test_rewrite_position_delete_files_leaves_the_same_rows(scattered, call, ids):
    call("rewrite_position_delete_files", "options => map('rewrite-all', 'true')")

    assert ids(scattered) == ROWS


def test_rewrite_manifests_joins_them(sql, scattered, call, ids):
    before = sql(f"SELECT count(*) FROM {scattered}.manifests WHERE content = 0")[0][0]

    call("rewrite_manifests", "use_caching => false")

    assert before > 1
    assert sql(f"SELECT count(*) FROM {scattered}.manifests WHERE content = 0") == [(1,)]
    assert ids(scattered) == ROWS


def test_expire_snapshots_forgets_history_and_deletes_its_files(sql, scattered, call, snapshots, ids, location):
    sql(f"INSERT OVERWRITE {scattered} SELECT * FROM {scattered}")
    before = len(files_below(location(scattered)))

    deleted = call("expire_snapshots", "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1")[0]

    assert len(snapshots(scattered)) == 1
    assert sum(deleted) > 0
    # One more file than were deleted is gone or new: the commit itself wrote metadata.
    assert len(files_below(location(scattered))) == before - sum(deleted) + 1
    assert ids(scattered) == ROWS


def test_expire_snapshots_keeps_what_a_tag_holds(sql, table, call, snapshots, ids):
    sql(f"ALTER TABLE {table} CREATE TAG keep")
    for id in (4, 5):
        sql(f"INSERT INTO {table} VALUES ({id}, 'lake', 1.0)")

    call("expire_snapshots", "older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => 1")

    assert len(snapshots(table)) == 2
    assert ids(f"{table} VERSION AS OF 'keep'") == [1, 2, 3]


@pytest.fixture
def listing(warehouse):
    """How `remove_orphan_files` lists what lies below a table: through Hadoop, or as the table itself is read."""
    return "prefix_listing => true" if warehouse.s3 else ""


def test_remove_orphan_files_leaves_what_the_table_owns(table, call, ids, location, listing):
    owned = files_below(location(table))

    assert call("remove_orphan_files", listing) == []

    assert files_below(location(table)) == owned
    assert ids(table) == [1, 2, 3]


def test_remove_orphan_files_deletes_strays_alone(table, call, ids, location, warehouse):
    if warehouse.s3:
        pytest.skip("only strays of three days are deleted, and an S3 store makes no file that is old")
    folder = pathlib.Path(urllib.parse.urlsplit(location(table)).path)
    owned = files_below(location(table))
    stray = folder / "data" / "stray.parquet"
    stray.write_bytes(b"nobody's")
    long_ago = time.time() - TEN_DAYS_S
    os.utime(stray, (long_ago, long_ago))

    removed = call("remove_orphan_files")

    assert [pathlib.Path(file).name for (file,) in removed] == ["stray.parquet"]
    assert files_below(location(table)) == owned
    assert ids(table) == [1, 2, 3]


def test_remove_orphan_files_deletes_what_a_list_names_and_the_table_lacks(sql, namespace, table, call, ids):
    gone = f"frazil.{namespace}.gone"
    sql(f"CREATE TABLE {gone} USING iceberg AS SELECT 1 AS id")
    ((stray,),) = sql(f"SELECT file_path FROM {gone}.files")
    folder = stray.rsplit("/data/", 1)[0]
    sql(f"DROP TABLE {gone}")
    sql(
        f"""CREATE OR REPLACE TEMPORARY VIEW listed AS
            SELECT file_path, TIMESTAMP '2020-01-01 00:00:00' AS last_modified
            FROM (SELECT file_path FROM {table}.files UNION ALL SELECT '{stray}')"""
    )

    removed = call("remove_orphan_files", f"file_list_view => 'listed', location => '{folder}'")
    sql("DROP VIEW listed")

    assert removed == [(stray,)]
    assert [file for file in files_below(folder) if file.suffix == ".parquet"] == []
    assert ids(table) == [1, 2, 3]


def test_rollback_to_snapshot_moves_main_back(sql, table, namespace, snapshots, ids):
    sql(f"DELETE FROM {table} WHERE id < 3")
    first, second = snapshots(table)

    moved = sql(f"CALL frazil.system.rollback_to_snapshot('{namespace}.readings', {first})")

    assert moved == [(second, first)]
    assert ids(table) == [1, 2, 3]
    sql(f"INSERT INTO {table} VALUES (4, 'lake', 4.0)")
    assert ids(table) == [1, 2, 3, 4]


def test_set_current_snapshot_goes_forth_again(sql, table, namespace, snapshots, ids):
    sql(f"DELETE FROM {table} WHERE id < 3")
    first, second = snapshots(table)
    for target, rows in ((first, [1, 2, 3]), (second, [3])):
        sql(f"CALL frazil.system.set_current_snapshot('{namespace}.readings', {target})")
        assert ids(table) == rows


def test_register_table_brings_back_an_unregistered_one(sql, table, namespace, rest, ids):
    metadata = rest.unregister(namespace, "readings")
    assert sql(f"SHOW TABLES IN frazil.{namespace}") == []

    sql(f"CALL frazil.system.register_table('{namespace}.again', '{metadata}')")

    again = f"frazil.{namespace}.again"
    assert ids(again) == [1, 2, 3]
    sql(f"INSERT INTO {again} VALUES (4, 'lake', 4.0)")
    assert ids(again) == [1, 2, 3, 4]


def test_ancestors_and_statistics_are_computed(sql, table, call, snapshots, location):
    sql(f"INSERT INTO {table} VALUES (4, 'lake', 4.0)")

    ancestors = [id for id, _ in sql(f"CALL frazil.system.ancestors_of('{table.removeprefix('frazil.')}')")]
    (statistics,) = call("compute_table_stats")[0]

    assert ancestors == snapshots(table)[::-1]
    assert pathlib.Path(statistics).name in [file.name for file in files_below(location(table))]
