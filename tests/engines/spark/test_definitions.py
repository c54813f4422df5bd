"""Statements that define: namespaces, tables, columns, partitions, properties, names."""

import pytest
from pyspark.errors import AnalysisException
from rest import files_below, wait_until


def test_namespaces_are_made_described_altered_and_dropped(sql, name):
    sql(f"CREATE NAMESPACE frazil.{name} WITH DBPROPERTIES ('team' = 'hydrology')")
    sql(f"CREATE NAMESPACE frazil.{name}.rivers")
    sql(f"ALTER NAMESPACE frazil.{name} SET PROPERTIES ('unit' = 'm3/s')")

    assert (f"{name}.rivers",) in sql(f"SHOW NAMESPACES IN frazil.{name}")
    described = str(sql(f"DESCRIBE NAMESPACE EXTENDED frazil.{name}"))
    assert "hydrology" in described and "m3/s" in described
    with pytest.raises(Exception, match="(?i)not empty"):
        sql(f"DROP NAMESPACE frazil.{name}")

    sql(f"DROP NAMESPACE frazil.{name}.rivers")
    sql(f"DROP NAMESPACE frazil.{name}")
    assert (name,) not in sql("SHOW NAMESPACES IN frazil")


def test_a_table_is_what_its_statement_says(sql, namespace):
    table = f"frazil.{namespace}.t"
    sql(
        f"""CREATE TABLE {table} (id bigint NOT NULL COMMENT 'key', at timestamp, place string, tags array<string>,
            shape struct<wide: int, deep: decimal(9,2)>, counts map<string, bigint>)
            USING iceberg PARTITIONED BY (days(at), bucket(4, id), truncate(2, place))
            COMMENT 'readings' TBLPROPERTIES ('team' = 'hydrology', 'format-version' = '2')"""
    )
    sql(
        f"""INSERT INTO {table} VALUES (1, TIMESTAMP '2026-01-01 12:00:00', 'sound', array('a'),
            named_struct('wide', 3, 'deep', 4.25), map('x', 1L))"""
    )

    assert sql(f"SELECT id, place, tags[0], shape.deep, counts['x'] FROM {table}")[0][:3] == (1, "sound", "a")
    assert sql(f"SELECT count(*) FROM {table} WHERE at >= TIMESTAMP '2026-01-01 00:00:00' AND place LIKE 'so%'") == [
        (1,)
    ]
    properties = dict(sql(f"SHOW TBLPROPERTIES {table}"))
    assert (properties["team"], properties["format-version"]) == ("hydrology", "2")
    partition = sql(f"SELECT partition FROM {table}.partitions")[0][0]
    assert partition.place_trunc == "so"
    assert sql(f"SHOW TABLES IN frazil.{namespace}") == [(namespace, "t", False)]


def test_a_name_is_given_once(sql, table):
    with pytest.raises(AnalysisException, match="(?i)already exists"):
        sql(f"CREATE TABLE {table} (id bigint) USING iceberg")

    sql(f"CREATE TABLE IF NOT EXISTS {table} (other string) USING iceberg")
    assert sql(f"SELECT count(*) FROM {table}") == [(3,)]


def test_columns_are_added_renamed_widened_moved_and_dropped(sql, spark, namespace):
    table = f"frazil.{namespace}.columns"
    sql(f"CREATE TABLE {table} (id int, place string, shape struct<wide: int>) USING iceberg")
    sql(f"INSERT INTO {table} VALUES (1, 'sound', named_struct('wide', 2))")

    sql(f"ALTER TABLE {table} ADD COLUMNS (depth double COMMENT 'metres', shape.deep int)")
    sql(f"ALTER TABLE {table} RENAME COLUMN place TO site")
    sql(f"ALTER TABLE {table} ALTER COLUMN id TYPE bigint")
    sql(f"ALTER TABLE {table} ALTER COLUMN depth FIRST")
    assert spark.table(table).columns == ["depth", "id", "site", "shape"]
    assert spark.table(table).schema["id"].dataType.simpleString() == "bigint"
    assert sql(f"SELECT depth, id, site, shape.wide, shape.deep FROM {table}") == [(None, 1, "sound", 2, None)]

    sql(f"ALTER TABLE {table} DROP COLUMN site")
    sql(f"ALTER TABLE {table} ADD COLUMN site string")
    assert sql(f"SELECT id, site FROM {table}") == [(1, None)]


def test_partitions_evolve_and_every_layout_is_read(sql, table, ids):
    sql(f"ALTER TABLE {table} ADD PARTITION FIELD bucket(4, id) AS shard")
    sql(f"INSERT INTO {table} VALUES (4, 'delta', 2.5)")
    sql(f"ALTER TABLE {table} REPLACE PARTITION FIELD shard WITH bucket(8, id)")
    sql(f"ALTER TABLE {table} DROP PARTITION FIELD place")
    sql(f"INSERT INTO {table} VALUES (5, 'delta', 2.5)")

    assert ids(table) == [1, 2, 3, 4, 5]
    assert ids(f"{table} WHERE place = 'delta'") == [3, 4, 5]
    assert len(sql(f"SELECT DISTINCT spec_id FROM {table}.files")) == 3


def test_write_order_and_identifier_fields_are_kept(sql, table):
    sql(f"ALTER TABLE {table} WRITE ORDERED BY place, id DESC")
    sql(f"ALTER TABLE {table} SET IDENTIFIER FIELDS id")

    properties = dict(sql(f"SHOW TBLPROPERTIES {table}"))
    assert properties["sort-order"] == "place ASC NULLS FIRST, id DESC NULLS LAST"
    assert properties["identifier-fields"] == "[id]"


def test_properties_are_set_and_unset(sql, table):
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('team' = 'hydrology', 'unit' = 'm3/s')")
    sql(f"ALTER TABLE {table} UNSET TBLPROPERTIES ('unit')")

    properties = dict(sql(f"SHOW TBLPROPERTIES {table}"))
    assert properties["team"] == "hydrology"
    assert "unit" not in properties


def test_a_renamed_table_keeps_its_rows(sql, namespace, table, ids):
    sql(f"ALTER TABLE {table} RENAME TO {namespace}.archive")

    assert ids(f"frazil.{namespace}.archive") == [1, 2, 3]
    assert sql(f"SHOW TABLES IN frazil.{namespace}") == [(namespace, "archive", False)]
    with pytest.raises(AnalysisException):
        sql(f"SELECT * FROM {table}")


def test_a_dropped_table_is_gone_and_its_files_stay(sql, table, location):
    where = location(table)

    sql(f"DROP TABLE {table}")

    assert any(file.suffix == ".parquet" for file in files_below(where))
    with pytest.raises(AnalysisException):
        sql(f"SELECT * FROM {table}")
    sql(f"DROP TABLE IF EXISTS {table}")


def test_a_purged_table_leaves_no_file(sql, table, location):
    where = location(table)
    assert files_below(where)

    sql(f"DROP TABLE {table} PURGE")

    wait_until(lambda: files_below(where) == [])
