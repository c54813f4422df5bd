"""The catalog through PyIceberg, and a table to work on."""

import pyiceberg
import pyiceberg_client
import pytest
from readings import BY_DAY, SCHEMA


@pytest.fixture(scope="session")
def catalog(uri, warehouse, login, report):
    catalog = pyiceberg_client.catalog(uri, warehouse, login)
    report.engine("PyIceberg", pyiceberg.__version__)

    def count(answer, **_):
        if answer.ok:
            report.ran(warehouse)

    catalog._session.hooks["response"].append(count)
    return catalog


@pytest.fixture
def namespace(catalog, name):
    catalog.create_namespace(name)
    return name


@pytest.fixture
def table(catalog, namespace):
    """An empty table partitioned by day."""
    return catalog.create_table(f"{namespace}.readings", SCHEMA, partition_spec=BY_DAY)
