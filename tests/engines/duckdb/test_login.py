"""DuckDB logs in: as a principal of the catalog's own, and as one of an OpenID provider."""

import duckdb
import pytest
from catalogs import attach
from login import WRONG_SECRET


def test_its_commits_bear_the_name_of_its_principal(table, ids, login, principals):
    assert ids(table) == [1, 2, 3]
    assert principals(table) == {login.principal}


def test_a_wrong_secret_is_refused(session, uri, warehouse, login, name):
    with pytest.raises(duckdb.Error, match=WRONG_SECRET):
        session.execute(attach(name, uri, warehouse, login.with_wrong_secret()))


def test_nobody_is_served_unknown(session, uri, warehouse, name):
    with pytest.raises(duckdb.Error, match="401|Unauthorized"):
        session.execute(attach(name, uri, warehouse))
