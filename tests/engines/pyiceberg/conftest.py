"""The catalog through PyIceberg, and a table to work on."""

import pytest
from pyiceberg.catalog import load_catalog
from readings import BY_DAY, SCHEMA
from rest import WAREHOUSE


@pytest.fixture(scope="session")
def catalog(uri):
    return load_catalog("frazil", type="rest", uri=uri, warehouse=WAREHOUSE)


@pytest.fixture
def namespace(catalog, name):
    catalog.create_namespace(name)
    return name


@pytest.fixture
def table(catalog, namespace):
    """An empty table partitioned by day."""
    return catalog.create_table(f"{namespace}.readings", SCHEMA, partition_spec=BY_DAY)
