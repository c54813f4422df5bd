"""Rows in and out: append, upsert, delete, overwrite, and writers that meet."""

import threading

import pyarrow
import pytest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import IdentityTransform
from readings import SCHEMA, ids, places, readings


def test_appended_rows_are_read_back_by_partition(table):
    table.append(readings(1, 2, day=1))
    table.append(readings(3, day=2), snapshot_properties={"run": "7"})

    assert ids(table) == [1, 2, 3]
    assert ids(table, row_filter="at >= '2026-01-02T00:00:00'") == [3]
    assert table.current_snapshot().summary["run"] == "7"
    assert table.inspect.partitions().num_rows == 2


def test_an_upsert_updates_what_is_there_and_inserts_the_rest(table):
    table.append(readings(1, 2))

    outcome = table.upsert(readings(2, 3, place="delta"))

    assert (outcome.rows_updated, outcome.rows_inserted) == (1, 1)
    assert places(table) == {1: "sound", 2: "delta", 3: "delta"}


def test_deleted_rows_are_gone_and_stay_in_history(table):
    table.append(readings(1, 2, 3))
    before = table.current_snapshot().snapshot_id

    table.delete("id = 2")

    assert ids(table) == [1, 3]
    assert ids(table, snapshot_id=before) == [1, 2, 3]


def test_an_overwrite_replaces_what_its_filter_names(table):
    table.append(pyarrow.concat_tables([readings(1, day=1), readings(2, day=2)]))

    table.overwrite(readings(9, day=1), overwrite_filter="at < '2026-01-02T00:00:00'")

    assert ids(table) == [2, 9]


def test_a_dynamic_overwrite_replaces_the_partitions_that_it_writes(catalog, namespace):
    by_place = PartitionSpec(PartitionField(source_id=3, field_id=1000, transform=IdentityTransform(), name="place"))
    table = catalog.create_table(f"{namespace}.by_place", SCHEMA, partition_spec=by_place)
    table.append(pyarrow.concat_tables([readings(1, place="sound"), readings(2, place="delta")]))

    table.dynamic_partition_overwrite(readings(8, place="delta"))

    assert ids(table) == [1, 8]


def test_an_append_from_a_stale_handle_lands_by_a_retry(catalog, table):
    stale = catalog.load_table(table.name())
    table.append(readings(1))

    stale.append(readings(2))

    assert ids(table.refresh()) == [1, 2]
    assert len(table.history()) == 2


def test_a_schema_change_from_a_stale_handle_is_refused(catalog, table):
    stale = catalog.load_table(table.name())
    with table.update_schema() as update:
        update.rename_column("place", "site")

    with pytest.raises(CommitFailedException):
        with stale.update_schema() as update:
            update.rename_column("place", "station")

    assert [field.name for field in table.refresh().schema().fields] == ["id", "at", "site"]


def test_two_writers_lose_no_row_and_double_none(catalog, table):
    table.transaction().set_properties({"commit.retry.num-retries": "20"}).commit_transaction()
    refused = []

    def write(first):
        mine = catalog.load_table(table.name())
        for id in range(first, first + 10):
            try:
                mine.append(readings(id))
            except CommitFailedException:
                refused.append(id)

    writers = [threading.Thread(target=write, args=(first,)) for first in (0, 100)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    expected = set(range(10)) | set(range(100, 110))
    assert ids(table.refresh()) == sorted(expected - set(refused))
