"""Data frames of Polars, to and from tables."""

import polars
import pytest
from pyiceberg.types import StringType


def test_an_append_adds_the_rows_of_a_frame(table, readings, ids, ran):
    readings.with_columns(polars.col("id") + 10).write_iceberg(table, mode="append")
    ran()

    assert ids(table.refresh()) == [1, 2, 3, 11, 12, 13]


def test_an_overwrite_leaves_the_rows_of_a_frame_alone(table, readings, ids, ran):
    readings.head(1).write_iceberg(table, mode="overwrite")
    ran()

    assert ids(table.refresh()) == [1]


@pytest.mark.parametrize("reader", ["native", "pyiceberg"])
def test_a_scan_reads_what_it_filters_for(table, scan, reader, ran):
    frame = scan(table, reader_override=reader)

    found = frame.filter(polars.col("place") == "sound").select("id", "flow").sort("id").collect()
    ran()

    assert found.rows() == [(1, 0.5), (2, 0.7)]


def test_a_query_is_written_as_it_streams(catalog, namespace, table, scan, storage, ids, ran):
    query = scan(table).filter(polars.col("flow") < 1)

    target = {"target": f"{namespace}.slow", "catalog": catalog, "create_if_not_exists": True}
    query.sink_iceberg(**target, mode="append", storage_options=storage(table))
    ran()

    assert ids(catalog.load_table(f"{namespace}.slow")) == [1, 2]


def test_an_overwrite_replaces_what_its_filter_names(table, readings, storage, ids, ran):
    frame = readings.tail(1).with_columns(id=polars.lit(9, polars.Int64))

    options = {"overwrite_filter": "place = 'delta'", "storage_options": storage(table)}
    frame.lazy().sink_iceberg(table, mode="overwrite", **options)
    ran()

    assert ids(table.refresh()) == [1, 2, 9]


def test_a_schema_that_evolved_is_read_over_old_files(table, scan, ran):
    with table.update_schema() as update:
        update.add_column("note", StringType()).rename_column("flow", "rate")

    found = scan(table.refresh()).sort("id").collect()
    ran()

    assert found.columns == ["id", "place", "rate", "note"]
    assert found.row(0) == (1, "sound", 0.5, None)


def test_the_past_is_read_by_snapshot(table, readings, ids):
    first = table.current_snapshot().snapshot_id
    readings.head(1).write_iceberg(table, mode="overwrite")

    assert ids(table.refresh(), snapshot_id=first) == [1, 2, 3]


def test_a_dropped_table_is_gone(catalog, table, ran):
    catalog.drop_table(table.name())

    with pytest.raises(Exception, match="NoSuchTable|does not exist"):
        polars.scan_iceberg(".".join(table.name()), catalog=catalog).collect()
    ran()
