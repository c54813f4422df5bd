"""The catalog for Polars, which reaches it through PyIceberg, and a table to work on."""

import polars
import pyiceberg_client
import pytest


@pytest.fixture(scope="session")
def catalog(uri, warehouse):
    return pyiceberg_client.catalog(uri, warehouse)


@pytest.fixture
def ran(warehouse, report):
    """Counts operations of Polars that came out as they must."""
    report.engine("Polars", polars.__version__)
    return lambda count=1: report.ran(warehouse, count)


@pytest.fixture
def namespace(catalog, name):
    catalog.create_namespace(name)
    return name


@pytest.fixture
def readings():
    """Three readings of two places."""
    return polars.DataFrame({"id": [1, 2, 3], "place": ["sound", "sound", "delta"], "flow": [0.5, 0.7, 1.5]})


@pytest.fixture
def table(catalog, namespace, readings, ran):
    """A table that holds the readings, written by Polars."""
    table = catalog.create_table(f"{namespace}.readings", readings.to_arrow().schema)
    readings.write_iceberg(table, mode="append")
    ran()
    return table.refresh()


@pytest.fixture
def ids(ran):
    """The ids that a scan of a table finds, sorted, doubles included."""

    def scan(table, **options):
        found = polars.scan_iceberg(table, **options).sort("id").collect()["id"].to_list()
        ran()
        return found

    return scan
