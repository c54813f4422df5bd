"""Schemas, partition specs, sort orders and properties that change under data."""

from pyiceberg.transforms import BucketTransform, IdentityTransform
from pyiceberg.types import DoubleType
from readings import SCHEMA, ids, readings


def test_a_schema_evolves_over_rows_that_are_there(table):
    table.append(readings(1))

    with table.update_schema() as update:
        update.add_column("depth", DoubleType(), doc="metres").rename_column("place", "site")
    with table.update_schema() as update:
        update.move_first("depth")

    assert [field.name for field in table.schema().fields] == ["depth", "id", "at", "site"]
    assert table.scan().to_arrow().to_pylist()[0]["depth"] is None
    assert len(table.schemas()) == 3


def test_an_old_snapshot_is_read_with_its_own_schema(table):
    table.append(readings(1))
    before = table.current_snapshot().snapshot_id
    with table.update_schema() as update:
        update.delete_column("place")

    assert "place" in table.scan(snapshot_id=before).to_arrow().column_names
    assert "place" not in table.scan().to_arrow().column_names


def test_a_partition_spec_evolves_and_both_layouts_are_read(table):
    table.append(readings(1, 2))

    with table.update_spec() as update:
        update.add_field("id", BucketTransform(4), "id_bucket").add_field("place", IdentityTransform())
    table.append(readings(3, place="delta"))

    assert [field.name for field in table.spec().fields] == ["at_day", "id_bucket", "place"]
    assert ids(table, row_filter="place = 'delta'") == [3]
    assert ids(table) == [1, 2, 3]

    with table.update_spec() as update:
        update.remove_field("id_bucket")
    assert [field.name for field in table.spec().fields] == ["at_day", "place"]
    assert ids(table) == [1, 2, 3]


def test_a_sort_order_is_replaced(table):
    with table.update_sort_order() as update:
        update.asc("id", IdentityTransform())

    assert [field.source_id for field in table.sort_order().fields] == [1]
    assert len(table.sort_orders()) == 2


def test_properties_are_set_and_removed(table):
    with table.transaction() as transaction:
        transaction.set_properties({"owner": "hydrology", "unit": "m3/s"})
    with table.transaction() as transaction:
        transaction.remove_properties("unit")

    assert table.properties["owner"] == "hydrology"
    assert "unit" not in table.properties


def test_several_changes_are_one_commit(catalog, table):
    versions = len(table.metadata.metadata_log)
    with table.transaction() as transaction:
        transaction.append(readings(1))
        with transaction.update_schema() as update:
            update.add_column("depth", DoubleType())
        transaction.set_properties({"owner": "hydrology"})

    loaded = catalog.load_table(table.name())
    assert len(loaded.metadata.metadata_log) == versions + 1
    assert ids(loaded) == [1]
    assert loaded.properties["owner"] == "hydrology"
    assert "depth" in loaded.schema().column_names


def test_a_table_is_upgraded_to_format_2(catalog, namespace):
    table = catalog.create_table(f"{namespace}.old", SCHEMA, properties={"format-version": "1"})
    table.append(readings(1))

    with table.transaction() as transaction:
        transaction.upgrade_table_version(2)
    table.append(readings(2))

    loaded = catalog.load_table(table.name())
    assert loaded.metadata.format_version == 2
    assert loaded.metadata.last_sequence_number == 1
    assert ids(loaded) == [1, 2]


def test_a_table_of_format_3_starts_counting_rows(catalog, namespace):
    catalog.create_table(f"{namespace}.new", SCHEMA, properties={"format-version": "3"})

    metadata = catalog.load_table(f"{namespace}.new").metadata
    assert (metadata.format_version, metadata.next_row_id) == (3, 0)
