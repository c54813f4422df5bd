"""Branches, tags, time travel, and rows that are audited before they are published."""

import pytest


def test_a_branch_takes_rows_and_main_follows(sql, namespace, table, ids):
    sql(f"ALTER TABLE {table} CREATE BRANCH audit RETAIN 7 DAYS")
    sql(f"INSERT INTO {table}.branch_audit VALUES (4, 'lake', 4.0)")
    sql(f"UPDATE {table}.branch_audit SET flow = 0 WHERE id = 1")

    assert ids(table) == [1, 2, 3]
    assert ids(f"{table} VERSION AS OF 'audit'") == [1, 2, 3, 4]

    sql(f"CALL frazil.system.fast_forward('{namespace}.readings', 'main', 'audit')")
    assert ids(table) == [1, 2, 3, 4]
    sql(f"ALTER TABLE {table} DROP BRANCH audit")
    assert sql(f"SELECT name FROM {table}.refs") == [("main",)]


def test_a_tag_keeps_its_rows(sql, table, snapshots, ids):
    sql(f"ALTER TABLE {table} CREATE TAG q1 AS OF VERSION {snapshots(table)[0]} RETAIN 365 DAYS")
    sql(f"DELETE FROM {table} WHERE id = 1")

    assert ids(table) == [2, 3]
    assert ids(f"{table} VERSION AS OF 'q1'") == [1, 2, 3]
    assert sql(f"SELECT type, max_reference_age_in_ms FROM {table}.refs WHERE name = 'q1'") == [("TAG", 31_536_000_000)]

    sql(f"ALTER TABLE {table} CREATE OR REPLACE TAG q1")
    assert ids(f"{table} VERSION AS OF 'q1'") == [2, 3]
    sql(f"ALTER TABLE {table} DROP TAG q1")


def test_the_past_is_read_by_version_and_by_time(sql, table, snapshots, ids):
    sql(f"INSERT INTO {table} VALUES (4, 'lake', 4.0)")
    first, second = snapshots(table)
    moments = dict(sql(f"SELECT snapshot_id, CAST(committed_at AS string) FROM {table}.snapshots"))

    assert ids(f"{table} VERSION AS OF {first}") == [1, 2, 3]
    assert ids(f"{table} VERSION AS OF {second}") == [1, 2, 3, 4]
    assert ids(f"{table} TIMESTAMP AS OF '{moments[first]}'") == [1, 2, 3]
    assert ids(f"{table} TIMESTAMP AS OF '{moments[second]}'") == [1, 2, 3, 4]


@pytest.fixture
def audited(sql, table):
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.wap.enabled' = 'true')")
    return table


def test_a_staged_write_is_seen_once_it_is_published(sql, spark, namespace, audited, ids):
    spark.conf.set("spark.wap.id", "load-7")
    try:
        sql(f"INSERT INTO {audited} VALUES (4, 'lake', 4.0)")
    finally:
        spark.conf.unset("spark.wap.id")
    assert ids(audited) == [1, 2, 3]
    assert sql(f"SELECT count(*) FROM {audited}.snapshots WHERE summary['wap.id'] = 'load-7'") == [(1,)]

    sql(f"CALL frazil.system.publish_changes('{namespace}.readings', 'load-7')")
    assert ids(audited) == [1, 2, 3, 4]
    with pytest.raises(Exception, match="(?i)already|duplicate"):
        sql(f"CALL frazil.system.publish_changes('{namespace}.readings', 'load-7')")


def test_a_staged_write_is_picked_onto_a_main_that_went_on(sql, spark, namespace, audited, ids):
    spark.conf.set("spark.wap.id", "load-8")
    try:
        sql(f"INSERT INTO {audited} VALUES (4, 'lake', 4.0)")
    finally:
        spark.conf.unset("spark.wap.id")
    sql(f"INSERT INTO {audited} VALUES (5, 'lake', 5.0)")
    ((staged,),) = sql(f"SELECT snapshot_id FROM {audited}.snapshots WHERE summary['wap.id'] = 'load-8'")

    sql(f"CALL frazil.system.cherrypick_snapshot('{namespace}.readings', {staged})")

    assert ids(audited) == [1, 2, 3, 4, 5]


def test_a_session_writes_to_its_audit_branch(sql, spark, namespace, audited, ids):
    sql(f"ALTER TABLE {audited} CREATE BRANCH staging")
    spark.conf.set("spark.wap.branch", "staging")
    try:
        sql(f"INSERT INTO {audited} VALUES (4, 'lake', 4.0)")
        assert ids(audited) == [1, 2, 3, 4]
    finally:
        spark.conf.unset("spark.wap.branch")

    assert ids(audited) == [1, 2, 3]
    sql(f"CALL frazil.system.fast_forward('{namespace}.readings', 'main', 'staging')")
    assert ids(audited) == [1, 2, 3, 4]
