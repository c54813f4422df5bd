"""Fixtures of every client suite.

`tests/run` starts a server for each. One of your own does as well:

    FRAZIL_URI=http://127.0.0.1:8181 target/venvs/pyiceberg/bin/python -m pytest tests/engines/pyiceberg
"""

import os
import uuid

import pytest
from rest import Rest


@pytest.fixture(scope="session")
def uri():
    """The catalog's URI, as a client is given it."""
    return os.environ["FRAZIL_URI"]


@pytest.fixture(scope="session")
def rest(uri):
    return Rest(uri)


@pytest.fixture
def name():
    """A name that nothing else in the catalog has."""
    return f"n{uuid.uuid4().hex[:12]}"
