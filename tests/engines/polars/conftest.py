"""The catalog for Polars, which reaches it through PyIceberg, and a table to work on."""

import polars
import pyiceberg_client
import pytest


@pytest.fixture(scope="session")
def catalog(uri, warehouse, login):
    return pyiceberg_client.catalog(uri, warehouse, login)


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
def storage():
    """How to reach a table's files: Polars reads and writes them itself, and does not ask PyIceberg how."""

    def settings(table):
        return {key: value for key, value in table.io.properties.items() if key.startswith("s3.")} or None

    return settings


@pytest.fixture
def scan(storage):
    """A table as a frame that is read when it is asked for."""
    return lambda table, **options: polars.scan_iceberg(table, storage_options=storage(table), **options)


@pytest.fixture
def ids(scan, ran):
    """The ids that a scan of a table finds, sorted, doubles included."""

    def find(table, **options):
        found = scan(table, **options).sort("id").collect()["id"].to_list()
        ran()
        return found

    return find
