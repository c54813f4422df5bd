"""One Spark session per run, the catalog `frazil` in it, and a table to work on."""

import os

import pytest
from catalogs import catalog
from pyspark.sql import SparkSession

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


@pytest.fixture(scope="session")
def spark(uri, warehouse, login, tmp_path_factory):
    settings = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.jars": os.environ["ICEBERG_SPARK_JARS"],
        "spark.sql.extensions": EXTENSIONS,
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("spark")),
        "spark.ui.enabled": "false",
        **catalog("frazil", uri, warehouse, login),
    }
    builder = SparkSession.builder.master("local[2]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def sql(spark, warehouse, report):
    """Runs a statement and returns its rows as tuples."""
    report.engine("Spark", spark.version)

    def run(statement):
        rows = [tuple(row) for row in spark.sql(statement).collect()]
        report.ran(warehouse)
        return rows

    return run


@pytest.fixture
def namespace(sql, name):
    """A fresh namespace, without the catalog's name, as the procedures want it."""
    sql(f"CREATE NAMESPACE frazil.{name}")
    return name


@pytest.fixture
def table(sql, namespace):
    """A table of readings partitioned by place, with three rows."""
    table = f"frazil.{namespace}.readings"
    sql(f"CREATE TABLE {table} (id bigint NOT NULL, place string, flow double) USING iceberg PARTITIONED BY (place)")
    sql(f"INSERT INTO {table} VALUES (1, 'sound', 0.5), (2, 'sound', 0.7), (3, 'delta', 1.5)")
    return table


@pytest.fixture
def snapshots(sql):
    """The ids of a table's snapshots, oldest first."""
    return lambda table: [id for (id,) in sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at")]


@pytest.fixture
def location(sql):
    """Where a table keeps its files."""

    def find(table):
        described = dict(row[:2] for row in sql(f"DESCRIBE TABLE EXTENDED {table}"))
        return described["Location"]

    return find
