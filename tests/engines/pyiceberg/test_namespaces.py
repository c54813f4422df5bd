"""Namespaces, nested ones too, and their properties."""

import pytest
from pyiceberg.exceptions import NamespaceAlreadyExistsError, NamespaceNotEmptyError, NoSuchNamespaceError


def test_a_namespace_is_created_listed_and_dropped(catalog, name):
    catalog.create_namespace(name, {"owner": "hydrology"})

    assert (name,) in catalog.list_namespaces()
    assert catalog.namespace_exists(name)
    assert catalog.load_namespace_properties(name)["owner"] == "hydrology"
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace(name)

    catalog.drop_namespace(name)
    assert not catalog.namespace_exists(name)
    with pytest.raises(NoSuchNamespaceError):
        catalog.load_namespace_properties(name)


def test_a_nested_namespace_is_listed_below_its_parent_only(catalog, namespace):
    child = (namespace, "rivers")
    catalog.create_namespace(child)

    assert catalog.list_namespaces(namespace) == [child]
    assert child not in catalog.list_namespaces()
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(namespace)

    catalog.drop_namespace(child)
    assert catalog.list_namespaces(namespace) == []


def test_properties_are_set_removed_and_reported(catalog, namespace):
    catalog.update_namespace_properties(namespace, updates={"owner": "hydrology", "unit": "m3/s"})

    summary = catalog.update_namespace_properties(namespace, removals={"unit", "absent"}, updates={"owner": "ice"})

    assert (summary.updated, summary.removed, summary.missing) == (["owner"], ["unit"], ["absent"])
    properties = catalog.load_namespace_properties(namespace)
    assert properties["owner"] == "ice"
    assert "unit" not in properties


def test_a_namespace_that_holds_a_table_is_kept(catalog, namespace, table):
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace(namespace)

    assert catalog.list_tables(namespace) == [(namespace, "readings")]
