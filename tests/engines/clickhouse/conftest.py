"""The catalog as a database of a ClickHouse that lives in this process, and a table to work on.

ClickHouse names a table by one word, `namespace.table`, in the database that stands for the catalog. Tables whose place
the catalog shall choose are made by plain HTTP: in ClickHouse's own statement the place is part of the table's engine.
"""

import contextlib
import json

import pytest
from chdb import session as chdb
from databases import create

SETTINGS = ("allow_database_iceberg", "allow_insert_into_iceberg", "write_full_path_in_iceberg_metadata")


@pytest.fixture(scope="session")
def engine():
    """The one session that a process can have; its databases are made anew for each warehouse."""
    # In a process, ClickHouse reads and writes local files below the working folder alone.
    with contextlib.chdir("/"), contextlib.closing(chdb.Session()) as engine:
        for setting in SETTINGS:
            engine.query(f"SET {setting} = 1")
        yield engine


@pytest.fixture(scope="session")
def database(engine, uri, warehouse, login):
    name = f"{warehouse.name}_catalog"
    engine.query(create(name, uri, warehouse, login))
    yield name
    engine.query(f"DROP DATABASE {name}")


@pytest.fixture(scope="session")
def version(engine):
    return str(engine.query("SELECT version()", "TSVRaw")).strip()


@pytest.fixture
def sql(engine, version, warehouse, report):
    """Runs a statement and returns its rows as tuples."""
    report.engine("ClickHouse", version)

    def run(statement):
        answer = str(engine.query(statement, "JSONCompactEachRow"))
        report.ran(warehouse)
        return [tuple(json.loads(line)) for line in answer.splitlines()]

    return run


@pytest.fixture
def namespace(rest, name):
    rest.call("POST", f"{rest.base}/namespaces", {"namespace": [name]})
    return name


FIELDS = [
    {"id": 1, "name": "id", "type": "long", "required": True},
    {"id": 2, "name": "place", "type": "string", "required": False},
    {"id": 3, "name": "flow", "type": "double", "required": False},
]
BY_PLACE = {"fields": [{"source-id": 2, "transform": "identity", "name": "place"}]}


@pytest.fixture
def table(sql, database, namespace, rest):
    """A table of readings partitioned by place, with three rows."""
    readings = {"name": "readings", "schema": {"type": "struct", "fields": FIELDS}, "partition-spec": BY_PLACE}
    rest.call("POST", f"{rest.base}/namespaces/{namespace}/tables", readings)
    table = f"{database}.`{namespace}.readings`"
    sql(f"INSERT INTO {table} VALUES (1, 'sound', 0.5), (2, 'sound', 0.7), (3, 'delta', 1.5)")
    return table


@pytest.fixture
def location(rest, namespace):
    """Where a table of the namespace keeps its files."""

    def find(table):
        loaded = rest.call("GET", f"{rest.base}/namespaces/{namespace}/tables/{table}")
        return loaded["metadata"]["location"]

    return find
