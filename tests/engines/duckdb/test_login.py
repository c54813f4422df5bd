"""DuckDB logs in: as a principal of the catalog's own, and as one of an OpenID provider."""

import duckdb
import pages
import pytest
from catalogs import attach
from login import WRONG_SECRET


def test_its_commits_bear_the_name_of_its_principal(table, ids, login, principals):
    assert ids(table) == [1, 2, 3]
    assert principals(table) == {login.principal}


def test_a_connection_outlives_its_tokens(sql, table, ids, past_expiry):
    written = past_expiry(lambda id: sql(f"INSERT INTO {table} VALUES ({id}, 'sound', 0.1)"))

    assert ids(table) == [1, 2, 3, *written]


def test_the_page_tells_how(session, uri, login, name, table):
    session.execute(pages.logging_in("duckdb", uri, login).replace("AS frazil", f"AS {name}"))

    assert session.execute(f"SELECT count(*) FROM {table.replace('frazil', name)}").fetchone() == (3,)


def test_a_wrong_secret_is_refused(session, uri, warehouse, login, name):
    with pytest.raises(duckdb.Error, match=WRONG_SECRET):
        session.execute(attach(name, uri, warehouse, login.with_wrong_secret()))


def test_nobody_is_served_unknown(session, uri, warehouse, name):
    with pytest.raises(duckdb.Error, match="401|Unauthorized"):
        session.execute(attach(name, uri, warehouse))
