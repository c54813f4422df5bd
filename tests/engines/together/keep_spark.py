"""Keeps a table with Spark, turn after turn: keep_spark.py FOLDER JAR URI WAREHOUSE TABLE

Each turn compacts, then lists the snapshots, then expires all but the newest two of those it listed.
"""

import sys

import turns
from pyspark.sql import SparkSession


def main(folder, jar, uri, warehouse, table):
    spark = session(folder, jar, uri, warehouse)
    turns.take(folder, "spark", lambda: keep(spark, folder, table))
    spark.stop()


def keep(spark, folder, table):
    sql = lambda statement: spark.sql(statement).collect()
    options = "map('min-input-files', '2')"
    (compacted,) = sql(f"CALL frazil.system.rewrite_data_files(table => '{table}', options => {options})")
    with turns.alone(folder):
        listed = f"SELECT summary['total-records'], CAST(committed_at AS string) FROM frazil.{table}.snapshots"
        snapshots = sorted(sql(listed), key=lambda snapshot: snapshot[1])
        deleted = expire(sql, table, snapshots[-1][1]) if snapshots else 0
    return {
        "rewritten": compacted.rewritten_data_files_count,
        "records": [int(records) for records, _ in snapshots],
        "deleted": deleted,
    }


def expire(sql, table, before):
    """The number of files that went."""
    (counts,) = sql(
        f"CALL frazil.system.expire_snapshots(table => '{table}', older_than => TIMESTAMP '{before}', retain_last => 2)"
    )
    return sum(counts)


def session(folder, jar, uri, warehouse):
    catalog = "spark.sql.catalog.frazil"
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.jars": jar,
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": f"{folder}/spark",
        "spark.ui.enabled": "false",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "rest",
        f"{catalog}.uri": uri,
        f"{catalog}.warehouse": warehouse,
        # Each statement is to see the table as it is then.
        f"{catalog}.cache-enabled": "false",
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


main(*sys.argv[1:])
