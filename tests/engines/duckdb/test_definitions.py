"""Statements that define: schemas, tables, columns, properties, names."""

import duckdb
import pytest


def test_schemas_are_made_listed_and_dropped(sql, name):
    sql(f"CREATE SCHEMA frazil.{name}")
    sql(f"CREATE SCHEMA IF NOT EXISTS frazil.{name}")
    listed = "SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'frazil'"

    assert (name,) in sql(listed)
    sql(f"DROP SCHEMA frazil.{name}")
    assert (name,) not in sql(listed)


def test_a_nested_schema_is_named_with_a_dot(sql, name, namespace, ids):
    nested = f'frazil."{name}.rivers"'
    sql(f"CREATE SCHEMA {nested}")
    sql(f"CREATE TABLE {nested}.readings AS SELECT 1 AS id")

    assert ids(f"{nested}.readings") == [1]


def test_a_schema_that_holds_a_table_is_kept(sql, namespace, table, ids):
    with pytest.raises(duckdb.Error, match="NamespaceNotEmptyException"):
        sql(f"DROP SCHEMA {namespace}")

    assert ids(table) == [1, 2, 3]


def test_a_table_is_what_its_statement_says(sql, namespace):
    table = f"{namespace}.t"
    sql(
        f"""CREATE TABLE {table} (id BIGINT NOT NULL, taken TIMESTAMP, place VARCHAR, tags VARCHAR[],
            shape STRUCT(wide INTEGER, deep DECIMAL(9, 2)), counts MAP(VARCHAR, BIGINT))"""
    )
    sql(
        f"""INSERT INTO {table} VALUES
            (1, TIMESTAMP '2026-01-01 12:00:00', 'sound', ['a'], {{'wide': 3, 'deep': 4.25}}, MAP {{'x': 1}})"""
    )

    assert sql(f"SELECT id, place, tags[1], CAST(shape.deep AS VARCHAR), counts['x'] FROM {table}") == [
        (1, "sound", "a", "4.25", 1)
    ]
    assert [(column, kind) for column, kind, *_ in sql(f"DESCRIBE {table}")][:3] == [
        ("id", "BIGINT"),
        ("taken", "TIMESTAMP"),
        ("place", "VARCHAR"),
    ]


def test_a_name_is_given_once(sql, table, ids):
    with pytest.raises(duckdb.Error, match="already exists"):
        sql(f"CREATE TABLE {table} (id BIGINT)")

    sql(f"CREATE TABLE IF NOT EXISTS {table} (other VARCHAR)")
    assert ids(table) == [1, 2, 3]


def test_a_partitioned_table_is_read_by_partition(sql, namespace):
    table = f"{namespace}.by_month"
    sql(f"CREATE TABLE {table} (id BIGINT, day DATE) PARTITIONED BY (month(day))")
    sql(f"INSERT INTO {table} VALUES (1, DATE '2026-01-01'), (2, DATE '2026-01-31'), (3, DATE '2026-02-01')")

    assert sql(f"SELECT id FROM {table} WHERE day >= DATE '2026-02-01'") == [(3,)]
    assert sql(f"SELECT count(*) FROM iceberg_metadata({table}) WHERE manifest_content = 'DATA'") == [(2,)]


def test_columns_are_added_renamed_widened_and_dropped(sql, namespace):
    table = f"{namespace}.columns"
    sql(f"CREATE TABLE {table} (id INTEGER, place VARCHAR)")
    sql(f"INSERT INTO {table} VALUES (1, 'sound')")

    sql(f"ALTER TABLE {table} ADD COLUMN depth DOUBLE")
    sql(f"ALTER TABLE {table} RENAME COLUMN place TO site")
    sql(f"ALTER TABLE {table} ALTER COLUMN id SET DATA TYPE BIGINT")
    sql(f"INSERT INTO {table} VALUES (5000000000, 'delta', 2.5)")
    assert sql(f"SELECT id, site, depth FROM {table} ORDER BY id") == [(1, "sound", None), (5000000000, "delta", 2.5)]

    sql(f"ALTER TABLE {table} DROP COLUMN site")
    sql(f"ALTER TABLE {table} ADD COLUMN site VARCHAR")
    assert sql(f"SELECT id, site FROM {table} ORDER BY id") == [(1, None), (5000000000, None)]


def test_properties_are_set_and_removed(sql, table):
    sql(f"CALL set_iceberg_table_properties({table}, {{'team': 'hydrology', 'unit': 'm3/s'}})")
    sql(f"CALL remove_iceberg_table_properties({table}, ['unit'])")

    properties = dict(sql(f"SELECT * FROM iceberg_table_properties({table})"))
    assert properties["team"] == "hydrology"
    assert "unit" not in properties


def test_a_renamed_table_keeps_its_rows(sql, namespace, table, ids):
    sql(f"ALTER TABLE {table} RENAME TO archive")

    assert ids(f"{namespace}.archive") == [1, 2, 3]
    with pytest.raises(duckdb.CatalogException, match="does not exist"):
        sql(f"SELECT * FROM {table}")


def test_a_dropped_table_is_gone(sql, namespace, table):
    sql(f"DROP TABLE {table}")

    with pytest.raises(duckdb.CatalogException, match="does not exist"):
        sql(f"SELECT * FROM {table}")
    sql(f"DROP TABLE IF EXISTS {table}")
    sql(f"DROP SCHEMA {namespace}")
