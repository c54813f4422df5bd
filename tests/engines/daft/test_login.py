"""Daft logs in through PyIceberg: as a principal of the catalog's own, and as one of an OpenID provider."""

import daft


def test_its_commits_bear_the_name_of_its_principal(table, rows, login, principals):
    assert rows(table)["id"] == [1, 2, 3]
    assert principals(table) == {login.principal}


def test_a_catalog_outlives_its_tokens(catalog, table, rows, readings, past_expiry):
    one = readings.limit(1).collect().to_pydict()
    written = past_expiry(lambda id: catalog.get_table(table).append(daft.from_pydict({**one, "id": [id]})))

    assert rows(table)["id"] == [1, 2, 3, *written]
