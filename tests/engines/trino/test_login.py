"""Trino logs in: as a principal of the catalog's own, and as one of an OpenID provider."""

import re

import coordinator
import pytest
from login import WRONG_SECRET
from trino.exceptions import TrinoQueryError


@pytest.fixture(scope="session")
def catalogs(catalogs, uri, warehouse, login):
    """Beside the catalog that is let in, two that are not."""
    wrong = coordinator.catalog(warehouse, uri, login.with_wrong_secret())
    return {**catalogs, "wrong": wrong, "unknown": coordinator.catalog(warehouse, uri)}


def test_its_commits_bear_the_name_of_its_principal(table, ids, login, principals):
    assert ids(table) == [1, 2, 3]
    assert principals(table) == {login.principal}


def test_a_coordinator_outlives_its_tokens(sql, table, ids, past_expiry):
    written = past_expiry(lambda id: sql(f"INSERT INTO {table} VALUES ({id}, 'sound', 0.1)"))

    assert ids(table) == [1, 2, 3, *written]


@pytest.fixture
def refusal(sql):
    """What Trino tells of a statement that fails, its causes included."""

    def ask(statement):
        with pytest.raises(TrinoQueryError) as refused:
            sql(statement)
        return "; ".join(causes(refused.value.failure_info))

    return ask


def causes(failure):
    while failure:
        yield failure.get("message") or failure["type"]
        failure = failure.get("cause")


def test_a_wrong_secret_is_refused(refusal):
    assert re.search(WRONG_SECRET, refusal("SHOW SCHEMAS FROM wrong"))


def test_nobody_is_served_unknown(refusal):
    assert re.search("Not authorized: .*token", refusal("SHOW SCHEMAS FROM unknown"))
