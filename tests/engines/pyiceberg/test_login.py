"""PyIceberg logs in: as a principal of the catalog's own, and as one of an OpenID provider."""

import pages
import pyiceberg_client
import pytest
from login import WRONG_SECRET
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import OAuthError, UnauthorizedError
from readings import ids, readings


def test_its_commits_bear_the_name_of_its_principal(table, namespace, login, principals):
    table.append(readings(1, 2))

    assert ids(table) == [1, 2]
    assert principals(f"{namespace}.readings") == {login.principal}


def test_a_catalog_outlives_its_tokens(table, past_expiry):
    written = past_expiry(lambda id: table.append(readings(id)))

    assert ids(table) == written


def test_the_page_tells_how(uri, login, table):
    names = {}
    exec(pages.logging_in("pyiceberg", uri, login), names)

    assert names["catalog"].load_table(table.name()).metadata == table.metadata


def test_the_manager_of_tokens_is_an_other_way_to_log_in(uri, warehouse, login, table):
    """The setting `auth`, which is to follow upon `credential`."""
    client = {"client_id": login.client_id, "client_secret": login.client_secret, "token_url": login.token_uri}
    auth = {"type": "oauth2", "oauth2": client}
    catalog = load_catalog("frazil", type="rest", uri=uri, warehouse=warehouse.name, auth=auth)
    catalog.load_table(table.name()).append(readings(1))

    assert ids(table.refresh()) == [1]


def test_a_wrong_secret_is_refused(uri, warehouse, login):
    with pytest.raises(OAuthError, match=WRONG_SECRET):
        pyiceberg_client.catalog(uri, warehouse, login.with_wrong_secret())


def test_nobody_is_served_unknown(uri, warehouse):
    with pytest.raises(UnauthorizedError, match="token"):
        pyiceberg_client.catalog(uri, warehouse)
