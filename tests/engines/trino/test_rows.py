"""Rows in and out: insert, merge, update, delete, and writers that meet."""

import threading

import pytest
from trino.exceptions import TrinoQueryError


def test_a_merge_updates_deletes_and_inserts(sql, table):
    sql(
        f"""MERGE INTO {table} t
            USING (VALUES (1, 'sound', 9e0), (2, 'gone', 0e0), (7, 'lake', 7e0)) s (id, place, flow) ON t.id = s.id
            WHEN MATCHED AND s.place = 'gone' THEN DELETE
            WHEN MATCHED THEN UPDATE SET flow = s.flow
            WHEN NOT MATCHED THEN INSERT (id, place, flow) VALUES (s.id, s.place, s.flow)"""
    )

    assert sql(f"SELECT * FROM {table} ORDER BY id") == [(1, "sound", 9.0), (3, "delta", 1.5), (7, "lake", 7.0)]


def test_updated_rows_change_and_may_change_their_partition(sql, table):
    assert sql(f"UPDATE {table} SET flow = flow * 2, place = 'lake' WHERE id = 2") == [(1,)]

    assert sql(f"SELECT * FROM {table} ORDER BY id") == [(1, "sound", 0.5), (2, "lake", 1.4), (3, "delta", 1.5)]
    assert sql(f"SELECT DISTINCT \"$partition\" FROM {table} WHERE id = 2") == [("place=lake",)]


def test_deleted_rows_are_gone_and_stay_in_history(sql, table, ids, snapshots):
    before = snapshots(table)[-1]

    assert sql(f"DELETE FROM {table} WHERE id = 1") == [(1,)]

    assert ids(table) == [2, 3]
    assert ids(f"{table} FOR VERSION AS OF {before}") == [1, 2, 3]


def test_a_whole_partition_is_deleted_without_reading_it(sql, table, ids):
    schema, name = table.split(".")

    sql(f"DELETE FROM {table} WHERE place = 'sound'")

    assert ids(table) == [3]
    latest = f'SELECT operation, summary[\'deleted-data-files\'] FROM {schema}."{name}$snapshots"'
    assert sql(f"{latest} ORDER BY committed_at DESC LIMIT 1") == [("delete", "1")]


def test_a_truncated_table_is_empty_and_takes_rows_again(sql, table, ids):
    sql(f"TRUNCATE TABLE {table}")
    assert ids(table) == []

    sql(f"INSERT INTO {table} VALUES (9, 'lake', 9.0)")
    assert ids(table) == [9]


def test_rows_are_inserted_into_many_partitions_at_once(sql, schema):
    table = f"{schema}.numbers"
    sql(f"CREATE TABLE {table} (id bigint, at date) WITH (partitioning = ARRAY['month(at)'])")

    sql(f"INSERT INTO {table} SELECT n, date_add('day', n, DATE '2026-01-01') FROM UNNEST(sequence(0, 999)) AS s(n)")

    assert sql(f"SELECT count(*), count(DISTINCT id), sum(id) FROM {table}") == [(1000, 1000, 499_500)]
    assert sql(f'SELECT count(*) FROM {schema}."numbers$partitions"') == [(33,)]
    assert sql(f"SELECT count(*) FROM {table} WHERE at < DATE '2026-02-01'") == [(31,)]


ROUNDS = 5


def test_inserts_that_meet_both_land(connect, on, sql, table, ids):
    together = threading.Barrier(2)
    trouble = []

    def write(first):
        connection = connect()
        try:
            for id in range(first, first + ROUNDS):
                together.wait(120)
                on(connection, f"INSERT INTO {table} VALUES ({id}, 'lake', 1.0)")
        except Exception as error:
            trouble.append(error)
            together.abort()

    run_both(write, 100, 200)

    assert trouble == []
    assert ids(table) == [1, 2, 3, *range(100, 100 + ROUNDS), *range(200, 200 + ROUNDS)]


def test_of_updates_that_meet_none_is_lost(connect, on, sql, schema):
    table = f"{schema}.counter"
    sql(f"CREATE TABLE {table} AS SELECT BIGINT '0' AS n")
    together = threading.Barrier(2)
    landed, refused = [], []

    def write(writer):
        connection = connect()
        for turn in range(ROUNDS):
            together.wait(120)
            try:
                on(connection, f"UPDATE {table} SET n = n + 1")
                landed.append((writer, turn))
            except TrinoQueryError as refusal:
                refused.append(refusal.message)

    run_both(write, "one", "other")

    assert len(landed) + len(refused) == 2 * ROUNDS
    assert len(landed) >= ROUNDS
    assert sql(f"SELECT n FROM {table}") == [(len(landed),)]
    assert all("onflict" in message or "Failed to commit" in message for message in refused), refused


def run_both(write, *arguments):
    writers = [threading.Thread(target=write, args=(argument,)) for argument in arguments]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()


def test_a_row_that_breaks_a_constraint_changes_nothing(sql, table, ids, snapshots):
    before = snapshots(table)

    with pytest.raises(TrinoQueryError, match="(?i)null"):
        sql(f"INSERT INTO {table} VALUES (4, 'lake', 4.0), (NULL, 'lake', 5.0)")

    assert ids(table) == [1, 2, 3]
    assert snapshots(table) == before
