"""A PostgreSQL table through Debezium and the sink's own transform into a table that keeps every change."""

from collections import Counter

import machine
import page
import postgres
import pytest

DEBEZIUM = machine.VERSIONS["maven"]["connect-debezium"]["debezium.version"]


@pytest.fixture(autouse=True)
def debezium(report, engine):
    report.engine("Debezium", f"{DEBEZIUM}, PostgreSQL")


@pytest.fixture(scope="module")
def server(home):
    with open(home / "postgres.log", "w") as log, postgres.running(log, wal_level="logical") as server:
        yield server


@pytest.fixture
def database(server, name):
    """A database of the test's own, which has a table of 100 orders."""
    database = server.fresh_database(name).rpartition("/")[2]
    server.execute(
        database,
        """CREATE TABLE orders (id bigint PRIMARY KEY, place text, flow double precision);
           INSERT INTO orders SELECT id, 'sound', id / 2.0 FROM generate_series(1, 100) id;""",
    )
    return database


@pytest.fixture
def execute(server, database):
    """Runs SQL in that database."""
    return lambda sql: server.execute(database, sql)


@pytest.fixture
def changes(server, database, worker, sink, name):
    """The table that the two connectors of the page fill; they end with the test."""
    source = {
        "name": f"{name}-source",
        "database.port": server.port,
        "database.dbname": database,
        "topic.prefix": name,
        "slot.name": name,
        "publication.name": name,
    }
    target = {
        "name": name,
        "topics": f"{name}.public.orders",
        "iceberg.tables": f"{name}.orders",
        "iceberg.control.topic": f"control-{name}",
    }
    started = [
        worker.run(page.settings("debezium-source", source)),
        worker.run(sink(target, block="debezium-sink")),
    ]
    yield target["iceberg.tables"]
    for connector in started:
        worker.delete(connector)


def test_the_settings_of_the_page_carry_the_rows_and_then_every_change(execute, changes, lake, report, warehouse):
    lake.wait_for_rows(changes, 100)
    execute("INSERT INTO orders SELECT id, 'delta', 1.5 FROM generate_series(101, 150) id")
    execute("UPDATE orders SET place = 'moved' WHERE id <= 20")
    execute("DELETE FROM orders WHERE id > 140")
    lake.wait_for_rows(changes, 180)

    rows = lake.table(changes).scan(selected_fields=("id", "place", "_cdc")).to_arrow().to_pylist()
    kept = Counter((row["_cdc"]["op"], row["place"]) for row in rows)
    assert kept == {("I", "sound"): 100, ("I", "delta"): 50, ("U", "moved"): 20, ("D", None): 10}
    assert sorted(row["id"] for row in rows if row["_cdc"]["op"] == "D") == list(range(141, 151))
    lake.record(changes, "debezium")
    report.ran(warehouse, lake.commits(changes))
