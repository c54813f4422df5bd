"""The catalog `frazil` attached to a DuckDB that lives in this process, and a table to work on."""

import pathlib

import duckdb
import pytest
from catalogs import attach, secret

EXTENSIONS = ("httpfs", "avro", "iceberg")


def extension(name):
    """The file of an extension, as its own wheel brings it."""
    packages = pathlib.Path(duckdb.__file__).parents[1]
    (file,) = packages.glob(f"duckdb_extension_{name}/extensions/*/{name}.duckdb_extension")
    return file


@pytest.fixture(scope="session")
def session(uri, warehouse, login):
    """A connection of each warehouse's own: DuckDB's secrets and attached catalogs belong to it."""
    session = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in EXTENSIONS:
        session.load_extension(str(extension(name)))
    if warehouse.s3:
        session.execute(secret(warehouse.s3))
    session.execute(attach("frazil", uri, warehouse, login))
    yield session
    session.close()


@pytest.fixture
def sql(session, warehouse, report):
    """Runs a statement and returns its rows."""
    report.engine("DuckDB", duckdb.__version__)

    def run(statement):
        rows = session.execute(statement).fetchall()
        report.ran(warehouse)
        return rows

    return run


@pytest.fixture
def namespace(sql, name):
    """A fresh namespace, with the catalog's name, as statements want it."""
    sql(f"CREATE SCHEMA frazil.{name}")
    return f"frazil.{name}"


READINGS = "(1, 'sound', 0.5), (2, 'sound', 0.7), (3, 'delta', 1.5)"


@pytest.fixture
def table(sql, namespace):
    """A table of readings with three rows."""
    table = f"{namespace}.readings"
    sql(f"CREATE TABLE {table} (id BIGINT, place VARCHAR, flow DOUBLE)")
    sql(f"INSERT INTO {table} VALUES {READINGS}")
    return table


@pytest.fixture
def partitioned(sql, namespace):
    """The same rows, partitioned by place."""
    table = f"{namespace}.by_place"
    sql(f"CREATE TABLE {table} (id BIGINT, place VARCHAR, flow DOUBLE) PARTITIONED BY (place)")
    sql(f"INSERT INTO {table} VALUES {READINGS}")
    return table


@pytest.fixture
def snapshots(sql):
    """The ids of a table's snapshots, oldest first."""
    return lambda table: [
        id for (id,) in sql(f"SELECT snapshot_id FROM iceberg_snapshots({table}) ORDER BY sequence_number")
    ]
