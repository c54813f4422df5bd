"""Format version 3: deletion vectors, row lineage, defaults."""

import pytest


@pytest.fixture
def numbers(sql, schema):
    table = f"{schema}.numbers"
    sql(f"CREATE TABLE {table} WITH (format_version = 3) AS SELECT n AS id FROM UNNEST(sequence(1, 100)) AS s(n)")
    return table


def test_deletes_write_deletion_vectors(sql, numbers):
    schema, name = numbers.split(".")
    sql(f"DELETE FROM {numbers} WHERE id % 10 = 0")
    sql(f"DELETE FROM {numbers} WHERE id % 10 = 1")

    assert sql(f"SELECT count(*), sum(id) FROM {numbers}") == [(80, 5050 - 550 - 460)]
    vectors = f'SELECT file_format, record_count FROM {schema}."{name}$files" WHERE content = 1'
    assert sql(vectors) == [("PUFFIN", 20)]


def test_updates_and_merges_go_by_deletion_vectors_too(sql, numbers):
    sql(f"UPDATE {numbers} SET id = -id WHERE id <= 3")
    sql(
        f"""MERGE INTO {numbers} t USING (VALUES 100, 101) s (id) ON t.id = s.id
            WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (s.id)"""
    )

    assert sql(f"SELECT count(*), min(id), max(id), sum(id) FROM {numbers}") == [(100, -3, 101, 5050 - 12 + 1)]


def test_compaction_takes_the_vectors_away(sql, numbers):
    schema, name = numbers.split(".")
    sql(f"DELETE FROM {numbers} WHERE id <= 40")

    sql(f"ALTER TABLE {numbers} EXECUTE optimize(file_size_threshold => '10MB')")
    sql(f"ALTER TABLE {numbers} EXECUTE expire_snapshots(retention_threshold => '0s')")

    assert sql(f"SELECT count(*), min(id) FROM {numbers}") == [(60, 41)]
    assert sql(f'SELECT content, sum(record_count) FROM {schema}."{name}$files" GROUP BY 1') == [(0, 60)]


def test_a_table_is_lifted_to_format_3_and_its_rows_stay(sql, schema):
    table = f"{schema}.lifted"
    sql(f"CREATE TABLE {table} (id bigint) WITH (format_version = 2)")
    sql(f"INSERT INTO {table} VALUES 1, 2, 3")
    sql(f"DELETE FROM {table} WHERE id = 1")

    sql(f"ALTER TABLE {table} SET PROPERTIES format_version = 3")
    sql(f"DELETE FROM {table} WHERE id = 2")
    sql(f"INSERT INTO {table} VALUES 4")

    assert sql(f"SELECT id FROM {table} ORDER BY id") == [(3,), (4,)]
    assert "format_version = 3" in sql(f"SHOW CREATE TABLE {table}")[0][0]
