"""The past of a table: time travel, roll-back, branches and tags made elsewhere, and the tables about the table."""

import pytest
from trino.exceptions import TrinoQueryError


def test_the_past_is_read_by_version_and_by_time(sql, table, snapshots, ids):
    schema, name = table.split(".")
    sql(f"INSERT INTO {table} VALUES (4, 'lake', 4.0)")
    _, first, second = snapshots(table)
    moment = "to_iso8601(committed_at AT TIME ZONE 'UTC')"
    moments = dict(sql(f'SELECT snapshot_id, {moment} FROM {schema}."{name}$snapshots"'))

    assert ids(f"{table} FOR VERSION AS OF {first}") == [1, 2, 3]
    assert ids(f"{table} FOR VERSION AS OF {second}") == [1, 2, 3, 4]
    for snapshot, rows in ((first, [1, 2, 3]), (second, [1, 2, 3, 4])):
        literal = moments[snapshot].replace("T", " ").replace("Z", " UTC")
        assert ids(f"{table} FOR TIMESTAMP AS OF TIMESTAMP '{literal}'") == rows


def test_a_table_is_rolled_back(sql, table, snapshots, ids):
    before = snapshots(table)[-1]
    sql(f"DELETE FROM {table} WHERE id < 3")

    sql(f"ALTER TABLE {table} EXECUTE rollback_to_snapshot({before})")

    assert ids(table) == [1, 2, 3]
    with pytest.raises(TrinoQueryError, match="unknown snapshot"):
        sql(f"ALTER TABLE {table} EXECUTE rollback_to_snapshot(1)")


def test_a_branch_and_a_tag_made_elsewhere_are_read(sql, rest, table, snapshots, ids):
    schema, name = table.split(".")
    made, filled = snapshots(table)
    rest.set_ref(schema, name, "audit", "branch", made)
    rest.set_ref(schema, name, "q1", "tag", filled)

    sql(f"DELETE FROM {table} WHERE id = 1")

    assert ids(table) == [2, 3]
    assert ids(f"{table} FOR VERSION AS OF 'audit'") == []
    assert ids(f"{table} FOR VERSION AS OF 'q1'") == [1, 2, 3]
    assert sql(f'SELECT name, type FROM {schema}."{name}$refs" ORDER BY name') == [
        ("audit", "BRANCH"),
        ("main", "BRANCH"),
        ("q1", "TAG"),
    ]


def test_the_tables_about_a_table_agree(sql, table, snapshots):
    schema, name = table.split(".")
    about = lambda what, columns: sql(f'SELECT {columns} FROM {schema}."{name}${what}"')
    made, filled = snapshots(table)

    operations = "snapshot_id, parent_id, operation"
    assert sorted(about("snapshots", operations)) == sorted([(made, None, "append"), (filled, made, "append")])
    assert [row for row in about("history", "snapshot_id, is_current_ancestor")] == [(made, True), (filled, True)]
    assert about("refs", "name, type, snapshot_id") == [("main", "BRANCH", filled)]
    assert sorted(about("files", "partition.place, record_count")) == [("delta", 1), ("sound", 2)]
    counts = "partition.place, record_count, file_count"
    assert sorted(about("partitions", counts)) == [("delta", 1, 1), ("sound", 2, 1)]
    assert about("manifests", "added_data_files_count, added_rows_count") == [(2, 3)]
    assert about("entries", "count(*)") == about("all_entries", "count(*)") == [(2,)]
    assert about("metadata_log_entries", "count(DISTINCT file)") == about("metadata_log_entries", "count(*)")
    assert ("format-version", "2") in about("properties", "key, value")


def test_a_snapshot_says_who_wrote_it(sql, table):
    schema, name = table.split(".")
    summaries = sql(f'SELECT summary FROM {schema}."{name}$snapshots"')

    assert {summary["trino_user"] for (summary,) in summaries} == {"frazil"}
    assert all(summary["trino_query_id"] for (summary,) in summaries)
