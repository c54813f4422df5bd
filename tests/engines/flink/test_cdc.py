"""Change data capture: a table of PostgreSQL followed into an upsert table, across a crash of Flink."""

import postgres
import pytest
from lakehouse import options
from rest import wait_until

ORDERS = """
    CREATE TABLE orders (id bigint PRIMARY KEY, item text, qty int);
    ALTER TABLE orders REPLICA IDENTITY FULL;
    INSERT INTO orders SELECT id, 'item ' || id, id % 7 FROM generate_series(1, 1000) id;
"""
CHANGES = (
    "UPDATE orders SET qty = qty + 100 WHERE id <= 50",
    "DELETE FROM orders WHERE id BETWEEN 51 AND 60",
    "INSERT INTO orders SELECT id, 'late ' || id, 1 FROM generate_series(1001, 1100) id",
)
CHANGES_WHILE_DOWN = (
    "UPDATE orders SET item = 'renamed' WHERE id BETWEEN 900 AND 1050",
    "DELETE FROM orders WHERE id > 1090",
    "INSERT INTO orders VALUES (51, 'back again', 51)",
)


class Shop:
    """The database that is followed."""

    def __init__(self, server):
        self.server = server
        self.database = server.fresh_database("shop").rsplit("/", 1)[1]
        self.change(ORDERS)

    def change(self, *statements):
        """Each statement is a transaction of its own."""
        for statement in statements:
            self.server.execute(self.database, statement)

    def orders(self):
        return self.server.rows(self.database, "SELECT id, item, qty FROM orders ORDER BY id")

    def source(self):
        """The properties of Flink's source; its place in the change log is kept in a replication slot."""
        return {
            "connector": "postgres-cdc",
            "hostname": "127.0.0.1",
            "port": self.server.port,
            "username": "postgres",
            "password": "unused",
            "database-name": self.database,
            "schema-name": "public",
            "table-name": "orders",
            "slot.name": "flink",
            "decoding.plugin.name": "pgoutput",
            "scan.incremental.snapshot.enabled": "true",
        }


@pytest.fixture
def shop(tmp_path):
    with open(tmp_path / "postgres.log", "w") as log, postgres.running(log, wal_level="logical") as server:
        yield Shop(server)


@pytest.fixture
def orders(lake, namespace):
    table = f"{namespace}.orders"
    lake.run(
        f"""CREATE TABLE {table} (id BIGINT, item STRING, qty INT, PRIMARY KEY (id) NOT ENFORCED)
            WITH ('format-version' = '2', 'write.upsert.enabled' = 'true')"""
    )
    return table


def test_a_followed_table_has_the_same_rows_after_a_crash(lake, shop, orders, record):
    job = follow(lake, shop, orders)
    wait_until(lambda: rows(lake, orders) == shop.orders(), bound_s=120)
    shop.change(*CHANGES)
    wait_until(lambda: rows(lake, orders) == shop.orders(), bound_s=120)

    lake.crash()
    shop.change(*CHANGES_WHILE_DOWN)
    job = follow(lake, shop, orders, lake.flink.newest_checkpoint(job))
    wait_until(lambda: rows(lake, orders) == shop.orders(), bound_s=120)
    shop.change("UPDATE orders SET qty = 0 WHERE id = 1000")
    wait_until(lambda: rows(lake, orders) == shop.orders(), bound_s=120)
    lake.flink.stop_with_savepoint(job)

    assert rows(lake, orders) == shop.orders()
    assert lake.files_added_twice(orders) == []
    record("cdc", orders)


def follow(lake, shop, table, restore=None):
    lake.streaming("v2", restore)
    columns = "id BIGINT, item STRING, qty INT, PRIMARY KEY (id) NOT ENFORCED"
    lake.run(f"CREATE TEMPORARY TABLE followed ({columns}) WITH ({options(shop.source())})")
    return lake.start(f"INSERT INTO {table} SELECT * FROM followed")


def rows(lake, table):
    """The rows as PostgreSQL tells its own: text, ordered by id."""
    lake.batch()
    found = lake.query(f"SELECT id, item, qty FROM {table}")
    return [(str(id), item, str(qty)) for id, item, qty in sorted(found)]
