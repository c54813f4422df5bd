"""The catalog and data frames of Daft."""

import daft
import pytest
from daft.session import Session
from pyiceberg.types import StringType


def test_namespaces_are_made_found_and_dropped(catalog, name, ran):
    catalog.create_namespace(name)
    catalog.create_namespace_if_not_exists(name)

    assert catalog.has_namespace(name)
    catalog.drop_namespace(name)
    assert not catalog.has_namespace(name)
    ran(5)


def test_a_table_is_created_listed_and_dropped(catalog, namespace, table, ran):
    assert catalog.has_table(table)
    assert [str(found) for found in catalog.list_tables(namespace)] == [table]

    catalog.drop_table(table)
    assert not catalog.has_table(table)
    catalog.drop_namespace(namespace)
    ran(5)


def test_an_append_adds_rows(catalog, table, readings, rows, ran):
    catalog.get_table(table).append(readings.with_column("id", readings["id"] + 10))
    ran()

    assert rows(table)["id"] == [1, 2, 3, 11, 12, 13]


def test_an_overwrite_leaves_the_rows_of_a_frame_alone(catalog, table, readings, rows, ran):
    catalog.get_table(table).overwrite(readings.where(readings["id"] < 2))
    ran()

    assert rows(table) == {"id": [1], "place": ["sound"], "flow": [0.5]}


def test_a_scan_reads_what_it_filters_for(iceberg, table, ran):
    found = daft.read_iceberg(iceberg.load_table(table)).where("place = 'sound'").select("id", "flow").sort("id")

    assert found.to_pydict() == {"id": [1, 2], "flow": [0.5, 0.7]}
    ran()


def test_a_table_is_asked_by_sql(catalog, table, ran):
    session = Session()
    session.attach(catalog, alias="frazil")

    counted = session.sql(f"SELECT place, count(*) AS n FROM frazil.{table} GROUP BY place ORDER BY place")

    assert counted.to_pydict() == {"place": ["delta", "sound"], "n": [1, 2]}
    ran()


def test_a_schema_that_evolved_is_read_over_old_files(iceberg, table, rows):
    with iceberg.load_table(table).update_schema() as update:
        update.add_column("note", StringType()).rename_column("flow", "rate")

    assert rows(table) == {
        "id": [1, 2, 3],
        "place": ["sound", "sound", "delta"],
        "rate": [0.5, 0.7, 1.5],
        "note": [None, None, None],
    }


def test_the_past_is_read_by_snapshot(catalog, iceberg, table, readings, ran):
    first = iceberg.load_table(table).current_snapshot().snapshot_id
    catalog.get_table(table).overwrite(readings.where(readings["id"] < 2))

    assert daft.read_iceberg(iceberg.load_table(table), snapshot_id=first).count_rows() == 3
    ran(2)


def test_a_table_without_a_namespace_is_refused(catalog, name, readings):
    with pytest.raises(Exception, match="Namespace does not exist"):
        catalog.create_table(f"{name}.readings", readings.schema())
