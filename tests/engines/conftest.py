"""Fixtures of every client suite.

`tests/run` starts a server for each. One of your own does as well:

    FRAZIL_URI=http://127.0.0.1:8181 target/venvs/pyiceberg/bin/python -m pytest tests/engines/pyiceberg

FRAZIL_WAREHOUSES names the warehouses to run against, `default` where it is not set; S3_ENDPOINT, S3_REGION,
S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY are the settings of those that lie on S3. FRAZIL_LOGINS tells how clients log
in; without it nobody is asked, and the tests of logging in are left out.
"""

import os
import time
import uuid

import login as logins
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


# Beyond the ids that the tables have already.
FIRST_ID, PAUSE_S = 100, 0.2
LOGINS = logins.named_by_environment()
collect_ignore_glob = [] if LOGINS else ["*/test_login.py"]


@pytest.fixture(scope="session", params=LOGINS or [pytest.param(None, id=pytest.HIDDEN_PARAM)], ids=str)
def login(request):
    """Each login of the run in turn; None where the catalog asks nobody."""
    return request.param


@pytest.fixture(scope="session")
def rest(uri, warehouse, login):
    return Rest(uri, warehouse.name, login)


@pytest.fixture
def principals(rest):
    """Who has written to a table; its name may have the catalog's before it."""
    return lambda table: rest.principals(*table.split(".")[-2:])


@pytest.fixture
def past_expiry(login, rest):
    """Writes ids, one by one, until a client must have got itself a new token twice; returns the ids."""

    def go_on(write):
        ids = []
        for _ in range(2):
            token = login.token()
            while rest.admits(token):
                ids.append(FIRST_ID + len(ids))
                write(ids[-1])
                time.sleep(PAUSE_S)
        return ids

    return go_on


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
