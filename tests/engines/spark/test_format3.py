"""Tables of format version 3: deletion vectors, row lineage, upgrade."""

import pytest


@pytest.fixture
def numbers(sql, namespace):
    table = f"frazil.{namespace}.numbers"
    settings = "'format-version' = '3', 'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read'"
    sql(f"CREATE TABLE {table} (id bigint, place string) USING iceberg TBLPROPERTIES ({settings})")
    sql(f"INSERT INTO {table} SELECT id, 'sound' FROM range(10)")
    return table


def test_deletes_are_deletion_vectors(sql, numbers, ids):
    sql(f"DELETE FROM {numbers} WHERE id = 3")
    sql(f"DELETE FROM {numbers} WHERE id = 4")

    assert ids(numbers) == [0, 1, 2, 5, 6, 7, 8, 9]
    assert {kind for (kind,) in sql(f"SELECT file_format FROM {numbers}.delete_files")} == {"PUFFIN"}


def test_rows_keep_their_ids_through_updates_and_compaction(sql, numbers, namespace):
    lineage = f"SELECT id, _row_id FROM {numbers} ORDER BY id"
    born = sql(lineage)
    assert sorted(row for _, row in born) == list(range(10))

    sql(f"UPDATE {numbers} SET place = 'delta' WHERE id = 5")
    sql(f"CALL frazil.system.rewrite_data_files(table => '{namespace}.numbers', options => map('rewrite-all', 'true'))")

    assert sql(lineage) == born
    assert sql(f"SELECT place FROM {numbers} WHERE id = 5") == [("delta",)]
    updated = dict(sql(f"SELECT id, _last_updated_sequence_number FROM {numbers}"))
    assert updated[5] > updated[4]


def test_new_rows_get_new_ids(sql, numbers):
    sql(f"INSERT INTO {numbers} VALUES (10, 'lake'), (11, 'lake')")

    rows = [row for (row,) in sql(f"SELECT _row_id FROM {numbers}")]
    assert len(set(rows)) == 12


def test_a_table_is_upgraded_with_its_rows(sql, table, ids):
    sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('format-version' = '3', 'write.delete.mode' = 'merge-on-read')")
    sql(f"INSERT INTO {table} VALUES (4, 'sound', 4.0)")
    sql(f"DELETE FROM {table} WHERE id = 1")

    assert ids(table) == [2, 3, 4]
    rows = [row for (row,) in sql(f"SELECT _row_id FROM {table}")]
    assert None not in rows and len(set(rows)) == 3
