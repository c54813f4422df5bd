"""Spark logs in: as a principal of the catalog's own, and as one of an OpenID provider."""

import pages
import pytest
from catalogs import catalog
from login import WRONG_SECRET


def test_its_commits_bear_the_name_of_its_principal(table, ids, login, principals):
    assert ids(table) == [1, 2, 3]
    assert principals(table) == {login.principal}


def test_a_session_outlives_its_tokens(sql, table, ids, past_expiry):
    written = past_expiry(lambda id: sql(f"INSERT INTO {table} VALUES ({id}, 'sound', 0.1)"))

    assert ids(table) == [1, 2, 3, *written]


@pytest.fixture
def ask_as(spark, uri, warehouse, name):
    """Asks for the namespaces, through a catalog with a login and with settings of its own."""

    def ask(login=None, settings=()):
        for key, value in {**catalog(name, uri, warehouse, login), **dict(settings)}.items():
            spark.conf.set(key.replace(".frazil.", f".{name}."), value)
        return spark.sql(f"SHOW NAMESPACES IN {name}").collect()

    return ask


def test_the_page_tells_how(ask_as, uri, login, namespace):
    settings = [line.split() for line in pages.logging_in("spark", uri, login).splitlines()]

    assert (namespace,) in ask_as(settings=settings)


def test_a_wrong_secret_is_refused(ask_as, login):
    with pytest.raises(Exception, match=WRONG_SECRET):
        ask_as(login.with_wrong_secret())


def test_nobody_is_served_unknown(ask_as):
    with pytest.raises(Exception, match="Not authorized: .*token"):
        ask_as()
