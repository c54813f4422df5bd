"""Flink CDC follows a table of PostgreSQL, killed and restored, under faults of the catalog, while Spark compacts."""

import postgres
import pytest
import spark as sparks
import storm
import streams
from rest import wait_until
from shop import Shop

# The connector is not published for a newer one.
FLINK = "flink-1.20"
ORDERS = 1000


@pytest.fixture
def shop(tmp_path):
    with open(tmp_path / "postgres.log", "w") as log, postgres.running(log, wal_level="logical") as server:
        yield Shop(server)


def test_a_followed_table_has_the_same_rows(lake, node, between, spark, namespace, shop, size, tell):
    table = f"{namespace}.orders"
    make(spark, table)
    between.faults.extend(storm.over(node, size.kills, size.lost, size.calm))
    job, restore = begin(lake, shop, table), None
    wait_until(lambda: rows(spark, table) == shop.orders(), bound_s=240)
    with sparks.keeping(spark, table) as keeper:
        for turn in range(size.turns):
            if turn % size.turns_a_crash == size.turns_a_crash - 1:
                restore = streams.restore_point(lake, job, restore)
                lake.crash()
                job = begin(lake, shop, table, restore)
            shop.change(*changes(turn))
            streams.wait_for_commits(between, 1)
        wait_until(lambda: rows(spark, table) == shop.orders(), bound_s=240)
        lake.flink.stop_with_savepoint(job)

    tell(**streams.outcomes(between), **keeper.figures())
    assert between.faults == []
    assert rows(spark, table) == shop.orders()
    assert spark.files_twice(f"frazil.{table}") == []
    streams.assert_unbroken(lake.metadata(table))


def make(spark, table):
    spark.sql(
        f"""CREATE TABLE frazil.{table} (id bigint NOT NULL, item string, qty int) USING iceberg
            TBLPROPERTIES ('write.upsert.enabled' = 'true', 'frazil.commit.rebase' = 'streaming')"""
    )
    spark.sql(f"ALTER TABLE frazil.{table} SET IDENTIFIER FIELDS id")


def changes(turn):
    """Some orders change, others go, and those that went before come back changed."""
    first = turn * 37 % ORDERS
    return (
        f"UPDATE orders SET qty = {turn} WHERE id BETWEEN {first} AND {first + 50}",
        f"DELETE FROM orders WHERE id BETWEEN {first + 20} AND {first + 30}",
        f"INSERT INTO orders SELECT id, 'turn {turn}', {turn} FROM generate_series({first}, {first + 10}) id"
        " ON CONFLICT DO NOTHING",
    )


def begin(lake, shop, table, restore=None):
    streams.open_session(lake, "v2", restore)
    shop.follow(lake)
    return lake.start(f"INSERT INTO frazil.{table} SELECT * FROM followed")


def rows(spark, table):
    """The rows as PostgreSQL tells its own: text, ordered by id."""
    return spark.sql(f"SELECT CAST(o.id AS string), item, CAST(qty AS string) FROM frazil.{table} o ORDER BY o.id")
