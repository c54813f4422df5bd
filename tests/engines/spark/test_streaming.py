"""Structured streaming into and out of tables: stopped and started again, no row lost and none doubled."""

import time

import pytest

BOUND_S = 120


@pytest.fixture
def stream(spark, tmp_path):
    """Starts the query that writes ever more numbered rows into a table, from where its checkpoint stands."""

    def start(table):
        source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 50).load()
        writer = source.selectExpr("value AS id", "timestamp AS at").writeStream.format("iceberg").outputMode("append")
        checkpoint = str(tmp_path / "checkpoint")
        return writer.option("checkpointLocation", checkpoint).trigger(processingTime="200 milliseconds").toTable(table)

    return start


@pytest.fixture
def numbers(sql, namespace):
    table = f"frazil.{namespace}.numbers"
    sql(f"CREATE TABLE {table} (id bigint, at timestamp) USING iceberg")
    return table


def run_until(query, sql, table, rows):
    """Lets the query run until the table has that many rows, then stops it."""
    end = time.monotonic() + BOUND_S
    try:
        while sql(f"SELECT count(*) FROM {table}")[0][0] < rows:
            assert query.exception() is None
            assert time.monotonic() < end, f"fewer than {rows} rows after {BOUND_S} s"
            time.sleep(0.3)
    finally:
        query.stop()


def test_a_restarted_stream_loses_no_row_and_doubles_none(sql, stream, numbers):
    for rows in (150, 350, 550):
        run_until(stream(numbers), sql, numbers, rows)

    count, distinct, first, last = sql(f"SELECT count(*), count(DISTINCT id), min(id), max(id) FROM {numbers}")[0]
    assert count == distinct == last - first + 1


def test_every_batch_is_one_snapshot_that_names_its_writer(sql, stream, numbers):
    for rows in (100, 200):
        run_until(stream(numbers), sql, numbers, rows)

    key = "spark.sql.streaming"
    written = sql(
        f"""SELECT summary['{key}.queryId'], CAST(summary['{key}.epochId'] AS bigint) FROM {numbers}.snapshots
            WHERE summary['added-records'] IS NOT NULL ORDER BY committed_at"""
    )
    epochs = [epoch for _, epoch in written]
    assert len({query for query, _ in written}) == 1
    assert epochs == sorted(set(epochs))


def test_a_stream_reads_what_was_appended_since_it_stopped(sql, spark, namespace, numbers, tmp_path):
    copy = f"frazil.{namespace}.copy"
    sql(f"CREATE TABLE {copy} (id bigint, at timestamp) USING iceberg")

    for first in (0, 100):
        sql(f"INSERT INTO {numbers} SELECT id, current_timestamp() FROM range({first}, {first + 100})")
        writer = spark.readStream.format("iceberg").load(numbers).writeStream.format("iceberg").outputMode("append")
        query = writer.option("checkpointLocation", str(tmp_path / "copy")).trigger(availableNow=True).toTable(copy)
        assert query.awaitTermination(BOUND_S)

    assert sql(f"SELECT count(*), count(DISTINCT id) FROM {copy}") == [(200, 200)]
