"""Transactions over several tables: DuckDB sends each as one `transactions/commit`."""

import duckdb
import pytest


@pytest.fixture
def copy(sql, namespace, table):
    """A second table with the same three readings."""
    copy = f"{namespace}.copy"
    sql(f"CREATE TABLE {copy} AS SELECT * FROM {table}")
    return copy


def test_a_commit_changes_both_tables_in_one_step(sql, table, copy, ids, snapshots):
    sql("BEGIN")
    sql(f"INSERT INTO {table} VALUES (4, 'lake', 4.0)")
    sql(f"DELETE FROM {copy} WHERE id = 1")
    sql("COMMIT")

    assert (ids(table), ids(copy)) == ([1, 2, 3, 4], [2, 3])
    assert (len(snapshots(table)), len(snapshots(copy))) == (2, 2)


def test_a_rollback_changes_neither(sql, table, copy, ids, snapshots):
    sql("BEGIN")
    sql(f"INSERT INTO {table} VALUES (4, 'lake', 4.0)")
    sql(f"DELETE FROM {copy} WHERE id = 1")
    sql("ROLLBACK")

    assert (ids(table), ids(copy)) == ([1, 2, 3], [1, 2, 3])
    assert (len(snapshots(table)), len(snapshots(copy))) == (1, 1)


def test_a_table_is_written_twice_in_one_transaction(sql, table, ids):
    sql("BEGIN")
    sql(f"INSERT INTO {table} VALUES (4, 'lake', 4.0)")
    sql(f"INSERT INTO {table} VALUES (5, 'lake', 5.0)")
    sql("COMMIT")

    assert ids(table) == [1, 2, 3, 4, 5]


def test_where_one_table_has_moved_on_the_other_is_left_alone(sql, session, table, copy, ids):
    with session.cursor() as rival:
        sql("BEGIN")
        sql(f"INSERT INTO {table} VALUES (4, 'lake', 4.0)")
        sql(f"INSERT INTO {copy} VALUES (4, 'lake', 4.0)")
        rival.execute(f"DELETE FROM {copy} WHERE id = 1")
    with pytest.raises(duckdb.Error, match="CommitFailedException"):
        sql("COMMIT")

    assert (ids(table), ids(copy)) == ([1, 2, 3], [2, 3])
