"""Statements that change rows, in both modes of writing, and tables made from queries."""

import pytest

MODES = ("copy-on-write", "merge-on-read")


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


@pytest.fixture
def written(sql, table, mode):
    """The table of readings, whose changes are written in `mode`."""
    settings = ", ".join(f"'write.{kind}.mode' = '{mode}'" for kind in ("delete", "update", "merge"))
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({settings})")
    return table


def test_inserts_add_rows(sql, table):
    sql(f"INSERT INTO {table} SELECT id, 'lake', id / 10 FROM range(10, 20)")

    assert sql(f"SELECT place, count(*) FROM {table} GROUP BY place ORDER BY place") == [
        ("delta", 1),
        ("lake", 10),
        ("sound", 2),
    ]


def test_an_insert_overwrite_replaces_the_partitions_that_it_writes(sql, spark, table, ids):
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        sql(f"INSERT OVERWRITE {table} VALUES (9, 'delta', 9.0)")
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")

    assert ids(table) == [1, 2, 9]


def test_an_insert_overwrite_of_a_partition_leaves_the_others(sql, table, ids):
    sql(f"INSERT OVERWRITE {table} PARTITION (place = 'sound') SELECT 8L, 8.0D")

    assert ids(table) == [3, 8]


def test_an_update_changes_the_rows_that_it_names(sql, written):
    sql(f"UPDATE {written} SET flow = flow + 10, place = 'lake' WHERE id IN (1, 3)")

    assert sql(f"SELECT * FROM {written} ORDER BY id") == [(1, "lake", 10.5), (2, "sound", 0.7), (3, "lake", 11.5)]


def test_a_delete_removes_rows_and_whole_partitions(sql, written, ids, mode):
    sql(f"DELETE FROM {written} WHERE id = 1")
    assert ids(written) == [2, 3]
    assert (sql(f"SELECT count(*) FROM {written}.delete_files")[0][0] > 0) == (mode == "merge-on-read")

    sql(f"DELETE FROM {written} WHERE place = 'delta'")
    assert ids(written) == [2]


def test_a_merge_updates_inserts_and_deletes(sql, written):
    sql(
        f"""MERGE INTO {written} t
            USING (VALUES (1L, 'sound', 5.0D), (2L, 'sound', -1.0D), (7L, 'lake', 7.0D) AS s(id, place, flow)) s
            ON t.id = s.id
            WHEN MATCHED AND s.flow < 0 THEN DELETE
            WHEN MATCHED THEN UPDATE SET *
            WHEN NOT MATCHED THEN INSERT *"""
    )

    assert sql(f"SELECT * FROM {written} ORDER BY id") == [(1, "sound", 5.0), (3, "delta", 1.5), (7, "lake", 7.0)]


def test_a_merge_with_inserts_alone_adds_each_row_once(sql, written, ids):
    merge = f"""MERGE INTO {written} t USING (SELECT 7L id, 'lake' place, 7.0D flow) s ON t.id = s.id
                WHEN NOT MATCHED THEN INSERT *"""
    sql(merge)
    sql(merge)

    assert ids(written) == [1, 2, 3, 7]


def test_a_table_is_made_from_a_query(sql, namespace, table, ids):
    made = f"frazil.{namespace}.made"
    sql(
        f"""CREATE TABLE {made} USING iceberg PARTITIONED BY (place) TBLPROPERTIES ('team' = 'me')
            AS SELECT * FROM {table}"""
    )

    assert ids(made) == [1, 2, 3]
    assert len(sql(f"SELECT * FROM {made}.snapshots")) == 1
    assert dict(sql(f"SHOW TBLPROPERTIES {made}"))["team"] == "me"


def test_a_table_is_replaced_from_a_query_and_keeps_its_history(sql, spark, table, ids, snapshots):
    (before,) = snapshots(table)

    sql(f"REPLACE TABLE {table} USING iceberg AS SELECT id, flow * 2 AS twice FROM {table} WHERE id < 3")

    assert spark.table(table).columns == ["id", "twice"]
    assert ids(table) == [1, 2]
    assert snapshots(table)[0] == before
    assert ids(f"{table} VERSION AS OF {before}") == [1, 2, 3]


def test_create_or_replace_does_both(sql, namespace, ids):
    made = f"frazil.{namespace}.either"
    for rows in (3, 5):
        sql(f"CREATE OR REPLACE TABLE {made} USING iceberg AS SELECT id FROM range({rows})")
        assert ids(made) == list(range(rows))


def test_truncate_empties_a_table(sql, table):
    sql(f"TRUNCATE TABLE {table}")

    assert sql(f"SELECT count(*) FROM {table}") == [(0,)]


def test_metadata_tables_agree_with_the_rows(sql, table):
    assert sql(f"SELECT sum(record_count) FROM {table}.files") == [(3,)]
    assert sql(f"SELECT count(*) FROM {table}.manifests") == [(1,)]
    assert sql(f"SELECT count(*) FROM {table}.history") == [(1,)]
    assert sql(f"SELECT name, type FROM {table}.refs") == [("main", "BRANCH")]
    assert sql(f"SELECT count(*) > 1 FROM {table}.metadata_log_entries") == [(True,)]
