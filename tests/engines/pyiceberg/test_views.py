"""Views, which share the tables' names."""

import pytest
from pyiceberg.exceptions import NoSuchViewError, TableAlreadyExistsError, ViewAlreadyExistsError
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion
from readings import SCHEMA


def count_of(namespace):
    """A view's first version: how many readings a namespace has."""
    return ViewVersion(
        version_id=1,
        schema_id=0,
        timestamp_ms=1_767_225_600_000,
        summary={"engine-name": "pyiceberg"},
        representations=[
            SQLViewRepresentation(type="sql", sql=f"SELECT count(*) FROM {namespace}.readings", dialect="spark")
        ],
        default_catalog=None,
        default_namespace=[namespace],
    )


def test_a_view_is_created_listed_loaded_and_dropped(catalog, namespace):
    view = f"{namespace}.counted"
    made = catalog.create_view(view, SCHEMA, count_of(namespace), properties={"comment": "how many"})

    assert catalog.list_views(namespace) == [(namespace, "counted")]
    assert catalog.view_exists(view)
    loaded = catalog.load_view(view)
    assert loaded.metadata == made.metadata
    assert loaded.sql_for("spark").sql == f"SELECT count(*) FROM {namespace}.readings"
    assert loaded.properties["comment"] == "how many"

    catalog.drop_view(view)
    assert catalog.list_views(namespace) == []
    assert not catalog.view_exists(view)
    with pytest.raises(NoSuchViewError):
        catalog.drop_view(view)


def test_a_name_is_a_table_or_a_view(catalog, namespace, table):
    with pytest.raises((ViewAlreadyExistsError, TableAlreadyExistsError)):
        catalog.create_view(table.name(), SCHEMA, count_of(namespace))

    catalog.create_view(f"{namespace}.counted", SCHEMA, count_of(namespace))
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(f"{namespace}.counted", SCHEMA)
    assert catalog.list_tables(namespace) == [(namespace, "readings")]
