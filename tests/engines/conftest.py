"""Fixtures of every client suite.

`tests/run` starts a server for each. One of your own does as well:

    FRAZIL_URI=http://127.0.0.1:8181 target/venvs/pyiceberg/bin/python -m pytest tests/engines/pyiceberg

FRAZIL_WAREHOUSES names the warehouses to run against, `default` where it is not set; S3_ENDPOINT, S3_REGION,
S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY are the settings of those that lie on S3.
"""

import os
import uuid

import pytest
from report import Report
from rest import Rest
from warehouse import named_by_environment


@pytest.fixture(scope="session")
def uri():
    """The catalog's URI, as a client is given it."""
    return os.environ["FRAZIL_URI"]


@pytest.fixture(scope="session", params=named_by_environment(), ids=lambda warehouse: warehouse.scheme)
def warehouse(request):
    """Each warehouse of the run in turn; what uses it runs once for each."""
    return request.param


@pytest.fixture(scope="session")
def rest(uri, warehouse):
    return Rest(uri, warehouse.name)


@pytest.fixture(scope="session")
def report():
    """Counts what the client was made to do, for the table of docs/engines/README.md."""
    report = Report()
    yield report
    report.write()


@pytest.fixture
def name():
    """A name that nothing else in the catalog has."""
    return f"n{uuid.uuid4().hex[:12]}"


@pytest.fixture
def ids(sql):
    """The ids that a relation has, sorted, doubles included; for engines of SQL, whose fixture `sql` returns rows."""
    return lambda relation: [id for (id,) in sql(f"SELECT id FROM {relation} ORDER BY id")]
