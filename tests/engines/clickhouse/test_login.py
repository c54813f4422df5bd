"""ClickHouse logs in: as a principal of the catalog's own, and as one of an OpenID provider."""

import pages
import pytest
from databases import create
from login import WRONG_SECRET


@pytest.fixture
def beside(engine, name):
    """The name of another database, which is gone after the test."""
    yield name
    engine.query(f"DROP DATABASE IF EXISTS {name}")


def test_its_commits_bear_the_name_of_its_principal(table, namespace, ids, login, rest):
    assert ids(table) == [1, 2, 3]
    assert rest.principals(namespace, "readings") == {login.principal}


def test_a_database_outlives_its_tokens(sql, table, ids, past_expiry):
    written = past_expiry(lambda id: sql(f"INSERT INTO {table} VALUES ({id}, 'sound', 0.1)"))

    assert ids(table) == [1, 2, 3, *written]


def test_the_page_tells_how(engine, sql, uri, login, beside, namespace, table):
    engine.query(pages.logging_in("clickhouse", uri, login).replace("DATABASE frazil", f"DATABASE {beside}"))

    assert sql(f"SELECT toInt32(count()) FROM {beside}.`{namespace}.readings`") == [(3,)]


def test_a_wrong_secret_is_refused(sql, engine, uri, warehouse, login, beside):
    with pytest.raises(RuntimeError, match=rf"{WRONG_SECRET}|\b40[01]\b"):
        engine.query(create(beside, uri, warehouse, login.with_wrong_secret()))
        sql(f"SHOW TABLES FROM {beside}")


def test_nobody_is_served_unknown(sql, engine, uri, warehouse, beside):
    with pytest.raises(RuntimeError, match=r"\b401\b|Unauthorized"):
        engine.query(create(beside, uri, warehouse))
        sql(f"SHOW TABLES FROM {beside}")
