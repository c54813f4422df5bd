"""Statements that change rows, tables made from queries, and the past."""

import pytest


@pytest.fixture(params=["table", "partitioned"])
def readings(request):
    """The three readings, without and with partitions."""
    return request.getfixturevalue(request.param)


def test_inserts_add_rows(sql, readings):
    sql(f"INSERT INTO {readings} SELECT id, 'lake', id / 10 FROM range(10, 20) r(id)")

    assert sql(f"SELECT place, count(*) FROM {readings} GROUP BY place ORDER BY place") == [
        ("delta", 1),
        ("lake", 10),
        ("sound", 2),
    ]


def test_an_update_changes_the_rows_that_it_names(sql, readings):
    sql(f"UPDATE {readings} SET flow = flow + 10 WHERE id IN (1, 3)")

    assert sql(f"SELECT * FROM {readings} ORDER BY id") == [(1, "sound", 10.5), (2, "sound", 0.7), (3, "delta", 11.5)]


def test_a_delete_removes_rows(sql, readings, ids):
    sql(f"DELETE FROM {readings} WHERE id = 1")
    assert ids(readings) == [2, 3]

    sql(f"DELETE FROM {readings} WHERE place = 'delta'")
    assert ids(readings) == [2]


MERGE = """MERGE INTO {table} t USING (VALUES (1, 'sound', 5.0), (7, 'lake', 7.0)) s(id, place, flow)
           ON t.id = s.id WHEN MATCHED THEN {change}
           WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.place, s.flow)"""


def test_a_merge_updates_and_inserts(sql, table):
    sql(MERGE.format(table=table, change="UPDATE SET flow = s.flow"))

    assert sql(f"SELECT * FROM {table} WHERE id <> 2 ORDER BY id") == [
        (1, "sound", 5.0),
        (3, "delta", 1.5),
        (7, "lake", 7.0),
    ]


def test_a_merge_deletes_and_inserts(sql, table, ids):
    sql(MERGE.format(table=table, change="DELETE"))

    assert ids(table) == [2, 3, 7]


def test_a_merge_with_inserts_alone_adds_each_row_once(sql, table, ids):
    merge = f"""MERGE INTO {table} t USING (SELECT 7 id, 'lake' place, 7.0 flow) s ON t.id = s.id
                WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.place, s.flow)"""
    sql(merge)
    sql(merge)

    assert ids(table) == [1, 2, 3, 7]


def test_a_table_is_made_from_a_query(sql, namespace, table, ids, snapshots):
    made = f"{namespace}.made"
    sql(f"CREATE TABLE {made} AS SELECT * FROM {table} WHERE id < 3")

    assert ids(made) == [1, 2]
    assert len(snapshots(made)) == 1


def test_the_past_is_read_by_version(sql, table, snapshots, ids):
    sql(f"INSERT INTO {table} VALUES (4, 'lake', 4.0)")
    first, second = snapshots(table)

    assert ids(f"{table} AT (VERSION => {first})") == [1, 2, 3]
    assert ids(f"{table} AT (VERSION => {second})") == [1, 2, 3, 4]


def test_a_table_of_format_3_keeps_its_deletes_as_vectors(sql, namespace, ids):
    table = f"{namespace}.numbers"
    sql(f"CREATE TABLE {table} (id BIGINT) WITH ('format-version' = 3)")
    sql(f"INSERT INTO {table} SELECT * FROM range(10)")
    sql(f"DELETE FROM {table} WHERE id IN (3, 4)")

    assert ids(table) == [0, 1, 2, 5, 6, 7, 8, 9]
    kinds = sql(f"SELECT DISTINCT file_format FROM iceberg_metadata({table}) WHERE manifest_content = 'DELETE'")
    assert [kind.upper() for (kind,) in kinds] == ["PUFFIN"]
