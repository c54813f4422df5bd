"""The catalog through ClickHouse: definitions, rows in and out, the past."""

import pytest


def test_tables_of_all_namespaces_are_listed(sql, database, namespace, table):
    assert (f"{namespace}.readings",) in sql(f"SHOW TABLES FROM {database}")


def test_a_table_has_the_columns_that_the_catalog_tells(sql, table):
    assert [column[:2] for column in sql(f"DESCRIBE {table}")] == [
        ("id", "Int64"),
        ("place", "Nullable(String)"),
        ("flow", "Nullable(Float64)"),
    ]


def test_inserts_add_rows(sql, table):
    sql(f"INSERT INTO {table} SELECT number, 'lake', number / 10 FROM numbers(10, 10)")

    assert sql(f"SELECT place, toInt32(count()) FROM {table} GROUP BY place ORDER BY place") == [
        ("delta", 1),
        ("lake", 10),
        ("sound", 2),
    ]
    assert sql(f"SELECT place, flow FROM {table} WHERE id = 3") == [("delta", 1.5)]


def test_an_update_and_a_delete_change_the_rows_that_they_name(sql, table):
    sql(f"ALTER TABLE {table} UPDATE flow = 9 WHERE id = 3")
    sql(f"ALTER TABLE {table} DELETE WHERE id = 1")

    assert sql(f"SELECT * FROM {table} ORDER BY id") == [(2, "sound", 0.7), (3, "delta", 9)]


def test_columns_are_added_renamed_and_dropped(sql, table):
    sql(f"ALTER TABLE {table} ADD COLUMN note Nullable(String)")
    sql(f"ALTER TABLE {table} RENAME COLUMN note TO remark")
    sql(f"INSERT INTO {table} (id, place, flow, remark) VALUES (4, 'lake', 4, 'cold')")
    assert sql(f"SELECT id, remark FROM {table} ORDER BY id") == [(1, None), (2, None), (3, None), (4, "cold")]

    sql(f"ALTER TABLE {table} DROP COLUMN remark")
    assert sql(f"SELECT * FROM {table} WHERE id = 4") == [(4, "lake", 4)]


def test_the_past_is_read_by_snapshot(sql, database, namespace, table, ids):
    sql(f"INSERT INTO {table} VALUES (4, 'lake', 4.0)")
    history = f"system.iceberg_history WHERE database = '{database}' AND table = '{namespace}.readings'"
    first, second = [id for (id,) in sql(f"SELECT toString(snapshot_id) FROM {history} ORDER BY made_current_at")]

    assert ids(table) == [1, 2, 3, 4]
    assert sql(f"SELECT id FROM {table} ORDER BY id SETTINGS iceberg_snapshot_id = {first}") == [(1,), (2,), (3,)]
    assert len(sql(f"SELECT id FROM {table} SETTINGS iceberg_snapshot_id = {second}")) == 4


def test_a_table_is_created_with_partitions_and_its_namespace_with_it(
    sql, database, namespace, table, location, warehouse, ids
):
    beside = location("readings").rsplit("/", 1)[0]
    made = f"{database}.`{namespace}_made.readings`"
    engine = storage(f"{beside}/{namespace}_made", warehouse.s3)
    sql(f"CREATE TABLE {made} (id Int64, place Nullable(String)) ENGINE = {engine} PARTITION BY (place)")

    sql(f"INSERT INTO {made} SELECT id, place FROM {table}")

    assert ids(made) == [1, 2, 3]
    assert sql(f"SELECT uniqExact(_path) = 2 FROM {made}") == [(1,)]


def storage(location, s3):
    """The table engine that tells ClickHouse where a new table lies."""
    if not s3:
        return f"IcebergLocal('{location.removeprefix('file://')}')"
    url = location.replace("s3://", f"{s3.endpoint}/")
    return f"IcebergS3('{url}', '{s3.access_key_id}', '{s3.secret_access_key}')"


def test_a_drop_that_leaves_out_the_warehouse_drops_nothing(sql, table, ids):
    with pytest.raises(Exception, match="NoSuchEndpointException"):
        sql(f"DROP TABLE {table}")

    assert ids(table) == [1, 2, 3]
