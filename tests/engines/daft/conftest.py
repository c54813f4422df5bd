"""The catalog as Daft sees it, through PyIceberg, and a table to work on."""

import daft
import pyiceberg_client
import pytest


@pytest.fixture(scope="session")
def iceberg(uri, warehouse, login):
    """The catalog through PyIceberg alone."""
    return pyiceberg_client.catalog(uri, warehouse, login)


@pytest.fixture(scope="session")
def catalog(iceberg):
    return daft.Catalog.from_iceberg(iceberg)


@pytest.fixture
def ran(warehouse, report):
    """Counts operations of Daft that came out as they must."""
    report.engine("Daft", daft.__version__)
    return lambda count=1: report.ran(warehouse, count)


@pytest.fixture
def namespace(catalog, name, ran):
    catalog.create_namespace(name)
    ran()
    return name


@pytest.fixture
def readings():
    """Three readings of two places."""
    return daft.from_pydict({"id": [1, 2, 3], "place": ["sound", "sound", "delta"], "flow": [0.5, 0.7, 1.5]})


@pytest.fixture
def table(catalog, namespace, readings, ran):
    """A table that holds the readings."""
    table = catalog.create_table(f"{namespace}.readings", readings.schema())
    table.append(readings)
    ran(2)
    return f"{namespace}.readings"


@pytest.fixture
def rows(catalog, ran):
    """A table's columns, in the order of its ids."""

    def read(table):
        found = catalog.get_table(table).read().sort("id").to_pydict()
        ran()
        return found

    return read
