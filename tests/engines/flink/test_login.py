"""Flink logs in: as a principal of the catalog's own, and as one of an OpenID provider."""

import flink as engine
import pages
import pytest
from lakehouse import Lakehouse
from login import WRONG_SECRET

ROWS = 20_000
# Slowly while tokens run out, so that the source does not end; what is left then goes fast.
SLOWLY, FAST = 50, 10_000


def test_its_commits_bear_the_name_of_its_principal(lake, numbers, login, principals):
    lake.run(f"INSERT INTO {numbers} VALUES (1, 1), (2, 2)")

    assert lake.ids(numbers) == (2, 2, 1, 2)
    assert principals(numbers) == {login.principal}


def test_a_stream_outlives_its_tokens(lake, numbers, sink, past_expiry):
    job = begin(lake, numbers, sink, SLOWLY)
    past_expiry(lambda _: lake.wait_for_commits(numbers, 1))
    savepoint = lake.flink.stop_with_savepoint(job)
    lake.flink.wait(begin(lake, numbers, sink, FAST, savepoint))

    assert lake.ids(numbers) == (ROWS, ROWS, 1, ROWS)


def begin(lake, table, sink, per_second, restore=None):
    """Starts the job, which ends when it is refused once."""
    lake.streaming(sink, restore, **{"restart-strategy.type": "disable"})
    lake.numbers(ROWS, per_second)
    return lake.start(f"INSERT INTO {table} SELECT id, v FROM numbers")


def test_the_page_tells_how(lake, uri, login, numbers):
    lake.flink.session("batch", {})
    lake.run(pages.logging_in("flink", uri, login).removesuffix(";\n"))

    assert lake.query(f"SELECT COUNT(*) FROM {numbers}") == [(0,)]


@pytest.fixture
def ask_as(flink, uri, warehouse, rest, report):
    """Opens a session with a login of its own."""
    return lambda login: Lakehouse(flink, uri, warehouse, rest, report, login).batch()


def test_a_wrong_secret_is_refused(ask_as, login):
    with pytest.raises(engine.FlinkError, match=WRONG_SECRET):
        ask_as(login.with_wrong_secret())


def test_nobody_is_served_unknown(ask_as):
    with pytest.raises(engine.FlinkError, match="Not authorized: .*token"):
        ask_as(None)
