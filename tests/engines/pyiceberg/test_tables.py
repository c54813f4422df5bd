"""A table's life: create, stage, rename, drop, register, purge."""

import pytest
from pyiceberg.exceptions import BadRequestError, NoSuchTableError, RESTError, TableAlreadyExistsError
from pyiceberg.types import DoubleType
from readings import BY_DAY, SCHEMA, ids, readings
from rest import files_below, wait_until


def test_a_created_table_is_what_was_asked_for(catalog, namespace):
    made = catalog.create_table(f"{namespace}.t", SCHEMA, partition_spec=BY_DAY, properties={"owner": "hydrology"})

    loaded = catalog.load_table(f"{namespace}.t")

    assert loaded.metadata == made.metadata
    assert loaded.schema() == SCHEMA
    assert loaded.schema().identifier_field_ids == [1]
    assert [field.name for field in loaded.spec().fields] == ["at_day"]
    assert loaded.properties["owner"] == "hydrology"
    assert catalog.table_exists(f"{namespace}.t")


def test_a_name_is_given_once(catalog, namespace, table):
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(f"{namespace}.readings", SCHEMA)

    assert catalog.create_table_if_not_exists(f"{namespace}.readings", SCHEMA).metadata == table.metadata


def test_a_staged_table_appears_with_its_first_rows(catalog, namespace):
    staged = catalog.create_table_transaction(f"{namespace}.staged", SCHEMA, partition_spec=BY_DAY)
    assert not catalog.table_exists(f"{namespace}.staged")

    with staged.update_schema() as update:
        update.add_column("depth", DoubleType())
    staged.append(readings(1, 2))
    assert not catalog.table_exists(f"{namespace}.staged")
    staged.commit_transaction()

    loaded = catalog.load_table(f"{namespace}.staged")
    assert ids(loaded) == [1, 2]
    assert "depth" in loaded.schema().column_names


def test_a_staged_table_loses_to_one_that_came_first(catalog, namespace):
    staged = catalog.create_table_transaction(f"{namespace}.staged", SCHEMA)
    first = catalog.create_table(f"{namespace}.staged", SCHEMA)
    staged.append(readings(1))

    with pytest.raises(Exception, match="(?i)already exists|requirement failed|CommitFailed"):
        staged.commit_transaction()

    assert catalog.load_table(f"{namespace}.staged").metadata == first.metadata


def test_a_renamed_table_keeps_its_rows_and_its_identity(catalog, namespace, table):
    table.append(readings(1))
    other = f"{namespace}_other"
    catalog.create_namespace(other)

    moved = catalog.rename_table(f"{namespace}.readings", f"{other}.archive")

    assert not catalog.table_exists(f"{namespace}.readings")
    assert (moved.metadata.table_uuid, ids(moved)) == (table.metadata.table_uuid, [1])
    with pytest.raises(NoSuchTableError):
        catalog.load_table(f"{namespace}.readings")
    moved.append(readings(2))
    assert ids(moved) == [1, 2]


def test_a_dropped_table_is_registered_again_from_its_files(catalog, namespace, table):
    table.append(readings(1))
    catalog.drop_table(table.name())
    assert not catalog.table_exists(table.name())

    back = catalog.register_table(f"{namespace}.back", table.metadata_location)

    assert back.metadata == table.metadata
    back.append(readings(2))
    assert ids(back) == [1, 2]


def test_an_unregistered_table_is_registered_again_from_its_last_commit(catalog, namespace, table, rest):
    table.append(readings(1))

    location = rest.unregister(namespace, "readings")

    assert location == table.metadata_location
    assert not catalog.table_exists(table.name())
    with pytest.raises(RESTError, match="NoSuchTableException"):
        table.append(readings(2))
    back = catalog.register_table(f"{namespace}.readings", location)
    assert ids(back) == [1]


def test_a_register_with_overwrite_moves_a_table_to_other_metadata(catalog, namespace, table):
    table.append(readings(1))
    first = table.metadata_location
    table.append(readings(2))
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table(table.name(), first)

    back = catalog.register_table(table.name(), first, overwrite=True)

    assert (back.metadata_location, ids(back)) == (first, [1])


def test_a_drop_keeps_the_files(catalog, table):
    table.append(readings(1))
    before = files_below(table.location())

    catalog.drop_table(table.name())

    assert files_below(table.location()) == before


def test_a_purge_deletes_the_files(catalog, table):
    table.append(readings(1))
    table.delete("id = 1")
    assert files_below(table.location())

    catalog.purge_table(table.name())

    assert not catalog.table_exists(table.name())
    wait_until(lambda: files_below(table.location()) == [])


def test_a_purge_is_refused_where_garbage_collection_is_forbidden(catalog, namespace):
    kept = catalog.create_table(f"{namespace}.kept", SCHEMA, properties={"gc.enabled": "false"})
    kept.append(readings(1))
    files = files_below(kept.location())

    with pytest.raises(BadRequestError, match="gc.enabled"):
        catalog.purge_table(kept.name())

    assert ids(catalog.load_table(kept.name())) == [1]
    assert files_below(kept.location()) == files
