"""Statements that define: schemas, tables, columns, partitions, comments, names."""

import pytest
from rest import files_below, wait_until
from trino.exceptions import TrinoUserError


def test_schemas_are_made_listed_and_dropped_when_empty(sql, name):
    sql(f"CREATE SCHEMA {name}")
    sql(f"CREATE SCHEMA IF NOT EXISTS {name}")
    sql(f"CREATE TABLE {name}.t (id bigint)")

    assert (name,) in sql("SHOW SCHEMAS")
    assert sql(f"SHOW TABLES FROM {name}") == [("t",)]
    with pytest.raises(TrinoUserError, match="already exists"):
        sql(f"CREATE SCHEMA {name}")
    with pytest.raises(TrinoUserError, match="non-empty"):
        sql(f"DROP SCHEMA {name}")

    sql(f"DROP TABLE {name}.t")
    sql(f"DROP SCHEMA {name}")
    assert (name,) not in sql("SHOW SCHEMAS")


def test_a_cascading_drop_takes_tables_and_views_along(sql, schema, table):
    sql(f"CREATE VIEW {schema}.some AS SELECT id FROM {table}")

    sql(f"DROP SCHEMA {schema} CASCADE")

    assert (schema,) not in sql("SHOW SCHEMAS")


def test_a_nested_namespace_does_not_disturb_the_list(sql, rest, schema):
    rest.call("POST", f"{rest.base}/namespaces", {"namespace": [schema, "rivers"]})

    assert [name for (name,) in sql("SHOW SCHEMAS") if name.startswith(schema)] == [schema]


def test_a_schema_that_is_not_there_is_said_to_be(sql, name):
    with pytest.raises(TrinoUserError, match="does not exist"):
        sql(f"SHOW TABLES FROM {name}")
    with pytest.raises(TrinoUserError, match="does not exist"):
        sql(f"SELECT * FROM {name}.t")


def test_a_table_is_what_its_statement_says(sql, schema):
    table = f"{schema}.t"
    sql(
        f"""CREATE TABLE {table} (id bigint NOT NULL COMMENT 'key', at timestamp(6), zoned timestamp(6) with time zone,
            place varchar, tags array(varchar), shape row(wide integer, deep decimal(9, 2)),
            counts map(varchar, bigint), code uuid, raw varbinary, day date)
            COMMENT 'readings'
            WITH (partitioning = ARRAY['day(at)', 'bucket(id, 4)', 'truncate(place, 2)'], sorted_by = ARRAY['id'],
                format = 'ORC', extra_properties = MAP())"""
    )
    sql(
        f"""INSERT INTO {table} VALUES (1, TIMESTAMP '2026-01-01 12:00:00', TIMESTAMP '2026-01-01 12:00:00 +02:00',
            'sound', ARRAY['a'], ROW(3, 4.25), MAP(ARRAY['x'], ARRAY[1]),
            UUID '12151fd2-7586-11e9-8f9e-2a86e4085a59', X'65683F', DATE '2026-01-01')"""
    )

    assert sql(f"SELECT id, place, tags[1], shape.wide, counts['x'], to_hex(raw) FROM {table}") == [
        (1, "sound", "a", 3, 1, "65683F")
    ]
    assert sql(f"SELECT count(*) FROM {table} WHERE at >= TIMESTAMP '2026-01-01 00:00:00' AND place LIKE 'so%'") == [
        (1,)
    ]
    statement = sql(f"SHOW CREATE TABLE {table}")[0][0]
    for told in ("COMMENT 'readings'", "'day(at)','bucket(id, 4)','truncate(place, 2)'", "id ASC NULLS FIRST", "'ORC'"):
        assert told in statement
    assert ("id", "bigint", "", "key") in sql(f"DESCRIBE {table}")


def test_a_name_is_given_once(sql, table):
    with pytest.raises(TrinoUserError, match="already exists"):
        sql(f"CREATE TABLE {table} (id bigint)")

    sql(f"CREATE TABLE IF NOT EXISTS {table} (other varchar)")
    assert sql(f"SELECT count(*) FROM {table}") == [(3,)]


def test_a_table_is_made_from_a_query_and_replaced_by_another(sql, schema, table):
    copy = f"{schema}.copy"
    sql(f"CREATE TABLE {copy} WITH (partitioning = ARRAY['place']) AS SELECT place, count(*) n FROM {table} GROUP BY 1")
    assert sql(f"SELECT * FROM {copy} ORDER BY place") == [("delta", 1), ("sound", 2)]

    sql(f"CREATE OR REPLACE TABLE {copy} AS SELECT max(flow) highest FROM {table}")
    assert sql(f"SELECT * FROM {copy}") == [(1.5,)]
    assert sql(f'SELECT count(*) FROM {schema}."copy$snapshots"') == [(2,)]

    sql(f"CREATE OR REPLACE TABLE {copy} (id bigint)")
    assert sql(f"SELECT count(*) FROM {copy}") == [(0,)]


def test_a_table_from_a_query_that_fails_is_not_there_where_the_schema_has_a_location(sql, table, name):
    root = sql(f'SELECT DISTINCT regexp_extract("$path", \'(.*)/[^/]*/data/\', 1) FROM {table}')[0][0]
    sql(f"CREATE SCHEMA {name}_placed WITH (location = '{root}/{name}_placed')")

    with pytest.raises(TrinoUserError, match="(?i)division by zero"):
        sql(f"CREATE TABLE {name}_placed.broken AS SELECT 1 / (n - n) AS x FROM UNNEST(sequence(1, 3)) AS s(n)")

    assert sql(f"SHOW TABLES FROM {name}_placed") == []


def test_columns_are_added_renamed_widened_moved_and_dropped(sql, schema):
    table = f"{schema}.columns"
    sql(f"CREATE TABLE {table} (id integer NOT NULL, place varchar, shape row(wide integer))")
    sql(f"INSERT INTO {table} VALUES (1, 'sound', ROW(2))")

    sql(f"ALTER TABLE {table} ADD COLUMN depth double COMMENT 'metres' FIRST")
    sql(f"ALTER TABLE {table} ADD COLUMN shape.deep integer")
    sql(f"ALTER TABLE {table} RENAME COLUMN place TO site")
    sql(f"ALTER TABLE {table} ALTER COLUMN id SET DATA TYPE bigint")
    sql(f"ALTER TABLE {table} ALTER COLUMN id DROP NOT NULL")
    assert [row[:2] for row in sql(f"DESCRIBE {table}")] == [
        ("depth", "double"),
        ("id", "bigint"),
        ("site", "varchar"),
        ("shape", 'row("wide" integer, "deep" integer)'),
    ]
    assert sql(f"SELECT depth, id, site, shape.wide, shape.deep FROM {table}") == [(None, 1, "sound", 2, None)]

    sql(f"ALTER TABLE {table} DROP COLUMN site")
    sql(f"ALTER TABLE {table} ADD COLUMN site varchar")
    assert sql(f"SELECT id, site FROM {table}") == [(1, None)]


def test_partitions_evolve_and_every_layout_is_read(sql, table, ids):
    schema, name = table.split(".")
    sql(f"ALTER TABLE {table} SET PROPERTIES partitioning = ARRAY['place', 'bucket(id, 4)']")
    sql(f"INSERT INTO {table} VALUES (4, 'delta', 2.5)")
    sql(f"ALTER TABLE {table} SET PROPERTIES partitioning = ARRAY['bucket(id, 8)']")
    sql(f"INSERT INTO {table} VALUES (5, 'delta', 2.5)")

    assert ids(table) == [1, 2, 3, 4, 5]
    assert ids(f"{table} WHERE place = 'delta'") == [3, 4, 5]
    assert sql(f'SELECT count(DISTINCT spec_id) FROM {schema}."{name}$files"') == [(3,)]


def test_a_table_is_lifted_to_a_newer_format(sql, schema, ids):
    table = f"{schema}.old"
    sql(f"CREATE TABLE {table} (id bigint) WITH (format_version = 1)")
    sql(f"INSERT INTO {table} VALUES 1, 2")

    sql(f"ALTER TABLE {table} SET PROPERTIES format_version = 2")
    sql(f"DELETE FROM {table} WHERE id = 1")

    assert ids(table) == [2]
    assert "format_version = 2" in sql(f"SHOW CREATE TABLE {table}")[0][0]


def test_comments_are_set_on_tables_and_columns(sql, table):
    sql(f"COMMENT ON TABLE {table} IS 'of the stream'")
    sql(f"COMMENT ON COLUMN {table}.flow IS 'm3/s'")

    assert "of the stream" in sql(f"SHOW CREATE TABLE {table}")[0][0]
    assert ("flow", "double", "", "m3/s") in sql(f"DESCRIBE {table}")


def test_a_renamed_table_keeps_its_rows(sql, schema, table, ids):
    sql(f"ALTER TABLE {table} RENAME TO {schema}.archive")

    assert ids(f"{schema}.archive") == [1, 2, 3]
    assert sql(f"SHOW TABLES FROM {schema}") == [("archive",)]
    with pytest.raises(TrinoUserError, match="does not exist"):
        sql(f"SELECT * FROM {table}")


def test_a_table_moves_to_another_schema(sql, schema, table, ids):
    sql(f"CREATE SCHEMA {schema}_two")

    sql(f"ALTER TABLE {table} RENAME TO {schema}_two.readings")

    assert ids(f"{schema}_two.readings") == [1, 2, 3]
    assert sql(f"SHOW TABLES FROM {schema}") == []


def test_the_information_schema_lists_tables_views_and_columns(sql, schema, table):
    sql(f"CREATE VIEW {schema}.some AS SELECT id FROM {table}")

    listed = "SELECT table_name, table_type FROM information_schema.tables"
    assert sql(f"{listed} WHERE table_schema = '{schema}' ORDER BY 1") == [("readings", "BASE TABLE"), ("some", "VIEW")]
    columns = "SELECT table_name, column_name FROM information_schema.columns"
    assert ("readings", "flow") in sql(f"{columns} WHERE table_schema = '{schema}'")


def test_a_dropped_table_is_gone_and_its_files_too(sql, schema, table, warehouse):
    location = sql(f'SELECT DISTINCT regexp_extract("$path", \'(.*)/data/\', 1) FROM {table}')[0][0]

    sql(f"DROP TABLE {table}")

    assert sql(f"SHOW TABLES FROM {schema}") == []
    sql(f"DROP TABLE IF EXISTS {table}")
    if warehouse.scheme == "file":
        wait_until(lambda: not files_below(location))
