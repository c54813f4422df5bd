"""Statements that define tables, and batch jobs that fill them."""

import pytest
from flink import FlinkError


@pytest.fixture
def readings(lake, namespace):
    """A table of readings partitioned by place, with three rows."""
    table = f"{namespace}.readings"
    lake.run(f"CREATE TABLE {table} (id BIGINT, place STRING) PARTITIONED BY (place)")
    lake.run(f"INSERT INTO {table} VALUES (1, 'sound'), (2, 'delta'), (3, 'sound')")
    return table


def columns(lake, table):
    return [row[0] for row in lake.query(f"DESCRIBE {table}")]


def rows(lake, relation):
    return sorted(lake.query(f"SELECT * FROM {relation}"))


def test_namespaces_are_made_altered_listed_and_dropped(lake, name):
    lake.run(f"CREATE DATABASE frazil.{name} WITH ('team' = 'hydrology')")
    lake.run(f"ALTER DATABASE frazil.{name} SET ('unit' = 'm3/s')")
    lake.run(f"CREATE DATABASE IF NOT EXISTS frazil.{name}")

    lake.run("USE CATALOG frazil")
    assert (name,) in lake.query("SHOW DATABASES")
    lake.run(f"CREATE TABLE {name}.t (id BIGINT)")
    with pytest.raises(FlinkError, match="(?i)not empty"):
        lake.run(f"DROP DATABASE {name}")

    lake.run(f"DROP TABLE {name}.t")
    lake.run(f"DROP DATABASE {name}")
    assert (name,) not in lake.query("SHOW DATABASES")


def test_a_table_is_what_its_statement_says(lake, namespace):
    table = f"{namespace}.t"
    lake.run(
        f"""CREATE TABLE {table} (id BIGINT NOT NULL COMMENT 'key', moment TIMESTAMP_LTZ(6), price DECIMAL(9, 2),
            tags ARRAY<STRING>, shape ROW<wide INT, deep DOUBLE>, counts MAP<STRING, BIGINT>,
            PRIMARY KEY (id) NOT ENFORCED) WITH ('format-version' = '2', 'team' = 'hydrology')"""
    )
    lake.run(
        f"""INSERT INTO {table} SELECT CAST(1 AS BIGINT), TO_TIMESTAMP_LTZ(1767268800000, 3),
            CAST(4.25 AS DECIMAL(9, 2)), ARRAY['a', 'b'], CAST(ROW(3, 0.5) AS ROW<wide INT, deep DOUBLE>),
            MAP['x', CAST(7 AS BIGINT)]"""
    )

    assert lake.query(f"SELECT id, price, tags[1], shape.wide, counts['x'] FROM {table}") == [(1, 4.25, "a", 3, 7)]
    metadata = lake.metadata(table)
    assert (metadata["format-version"], metadata["properties"]["team"]) == (2, "hydrology")
    assert metadata["schemas"][0]["identifier-field-ids"] == [1]
    assert "PRIMARY KEY" in lake.query(f"SHOW CREATE TABLE {table}")[0][0]


def test_a_name_is_given_once(lake, readings):
    with pytest.raises(FlinkError, match="(?i)already exists"):
        lake.run(f"CREATE TABLE {readings} (id BIGINT)")

    lake.run(f"CREATE TABLE IF NOT EXISTS {readings} (other STRING)")
    assert columns(lake, readings) == ["id", "place"]


def test_an_insert_adds_rows(lake, readings):
    lake.run(f"INSERT INTO {readings} SELECT id + 10, place FROM {readings}")

    assert [id for id, _ in rows(lake, readings)] == [1, 2, 3, 11, 12, 13]
    assert lake.operations(readings) == ["append", "append"]


def test_an_insert_overwrite_replaces_the_partitions_that_it_writes(lake, readings, record):
    lake.run(f"INSERT OVERWRITE {readings} VALUES (9, 'sound')")

    assert rows(lake, readings) == [(2, "delta"), (9, "sound")]
    assert lake.snapshots(readings)[-1]["summary"]["replace-partitions"] == "true"
    record("classic-batch", readings)


def test_an_insert_overwrite_of_a_partition_leaves_the_others(lake, readings):
    lake.run(f"INSERT OVERWRITE {readings} PARTITION (place = 'delta') SELECT CAST(8 AS BIGINT)")

    assert rows(lake, readings) == [(1, "sound"), (3, "sound"), (8, "delta")]


def test_a_table_is_made_from_a_query(lake, namespace, readings):
    made = f"{namespace}.made"
    lake.run(f"CREATE TABLE {made} AS SELECT id FROM {readings} WHERE place = 'sound'")

    assert rows(lake, made) == [(1,), (3,)]


def test_columns_are_added_renamed_widened_and_dropped(lake, namespace):
    table = f"{namespace}.columns"
    lake.run(f"CREATE TABLE {table} (id INT, place STRING)")
    lake.run(f"INSERT INTO {table} VALUES (1, 'sound')")

    lake.run(f"ALTER TABLE {table} ADD (depth DOUBLE COMMENT 'metres')")
    lake.run(f"ALTER TABLE {table} RENAME place TO site")
    lake.run(f"ALTER TABLE {table} MODIFY id BIGINT")
    assert rows(lake, table) == [(1, "sound", None)]
    types = dict(row[:2] for row in lake.query(f"DESCRIBE {table}"))
    assert types == {"id": "BIGINT", "site": "STRING", "depth": "DOUBLE"}

    lake.run(f"ALTER TABLE {table} DROP site")
    assert rows(lake, table) == [(1, None)]


def test_properties_are_set_and_reset(lake, readings):
    lake.run(f"ALTER TABLE {readings} SET ('commit.retry.num-retries' = '7', 'team' = 'hydrology')")
    lake.run(f"ALTER TABLE {readings} RESET ('team')")

    properties = lake.metadata(readings)["properties"]
    assert properties["commit.retry.num-retries"] == "7"
    assert "team" not in properties


def test_a_table_is_upgraded_to_format_3(lake, readings):
    lake.run(f"ALTER TABLE {readings} SET ('format-version' = '3')")
    lake.run(f"INSERT INTO {readings} VALUES (4, 'lake')")

    assert lake.metadata(readings)["format-version"] == 3
    assert [id for id, _ in rows(lake, readings)] == [1, 2, 3, 4]


def test_a_renamed_table_keeps_its_rows(lake, namespace, readings):
    lake.run(f"ALTER TABLE {readings} RENAME TO archive")

    lake.run("USE CATALOG frazil")
    lake.run(f"USE {namespace.removeprefix('frazil.')}")
    assert lake.query("SHOW TABLES") == [("archive",)]
    assert len(rows(lake, f"{namespace}.archive")) == 3


def test_a_dropped_table_is_gone(lake, readings):
    lake.run(f"DROP TABLE {readings}")

    with pytest.raises(FlinkError, match="(?i)not found"):
        lake.query(f"SELECT * FROM {readings}")
    lake.run(f"DROP TABLE IF EXISTS {readings}")


def test_the_past_is_read_by_snapshot(lake, readings):
    first = lake.metadata(readings)["current-snapshot-id"]
    lake.run(f"INSERT OVERWRITE {readings} VALUES (9, 'sound')")

    assert len(rows(lake, f"{readings} /*+ OPTIONS('snapshot-id' = '{first}') */")) == 3
    assert len(rows(lake, readings)) == 2


def test_a_branch_takes_rows_that_main_does_not_see(lake, readings):
    branch = f"{readings} /*+ OPTIONS('branch' = 'audit') */"
    lake.run(f"INSERT INTO {branch} VALUES (4, 'lake')")

    assert [id for id, _ in rows(lake, branch)] == [1, 2, 3, 4]
    assert [id for id, _ in rows(lake, readings)] == [1, 2, 3]


def test_metadata_tables_agree_with_the_rows(lake, namespace, readings):
    assert lake.query(f"SELECT SUM(record_count) FROM {namespace}.`readings$files`") == [(3,)]
    assert lake.query(f"SELECT operation FROM {namespace}.`readings$snapshots`") == [("append",)]
    assert lake.query(f"SELECT name, type FROM {namespace}.`readings$refs`") == [("main", "BRANCH")]
