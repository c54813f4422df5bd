"""Change data capture: a table of PostgreSQL followed into an upsert table, across a crash of Flink."""

import postgres
import pytest
from rest import wait_until
from shop import CHANGES, CHANGES_WHILE_DOWN, Shop


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
    shop.follow(lake)
    return lake.start(f"INSERT INTO {table} SELECT * FROM followed")


def rows(lake, table):
    """The rows as PostgreSQL tells its own: text, ordered by id."""
    lake.batch()
    found = lake.query(f"SELECT id, item, qty FROM {table}")
    return [(str(id), item, str(qty)) for id, item, qty in sorted(found)]
