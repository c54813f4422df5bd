"""Polars logs in through PyIceberg: as a principal of the catalog's own, and as one of an OpenID provider."""

import polars


def test_its_commits_bear_the_name_of_its_principal(table, ids, namespace, login, principals):
    assert ids(table) == [1, 2, 3]
    assert principals(f"{namespace}.readings") == {login.principal}


def test_a_catalog_outlives_its_tokens(table, ids, readings, past_expiry):
    def write(id):
        readings.head(1).with_columns(id=polars.lit(id, polars.Int64)).write_iceberg(table, mode="append")

    written = past_expiry(write)

    assert ids(table.refresh()) == [1, 2, 3, *written]
