"""One Trino per run with a catalog for each warehouse, and a table to work on."""

import coordinator
import paths
import pytest
import trino.dbapi
from warehouse import named_by_environment

# The procedures keep a week of history unless a session says otherwise.
KEEP_NOTHING = ("expire_snapshots_min_retention", "remove_orphan_files_min_retention")
CATALOGS = {"file": "frazil", "s3": "lake"}


@pytest.fixture(scope="session")
def catalogs(uri, login):
    """The text of each catalog's file, by its name."""
    return {
        CATALOGS[warehouse.scheme]: coordinator.catalog(warehouse, uri, login) for warehouse in named_by_environment()
    }


@pytest.fixture(scope="session")
def port(catalogs, tmp_path_factory):
    with open(paths.LOGS / "trino.coordinator.log", "w") as log:
        with coordinator.running(catalogs, tmp_path_factory.mktemp("trino"), log) as port:
            yield port


@pytest.fixture(scope="session")
def connect(port, warehouse):
    """Opens a connection whose default catalog is that of the warehouse."""
    catalog = CATALOGS[warehouse.scheme]
    session = {f"{catalog}.{name}": "0s" for name in KEEP_NOTHING}

    def open_one():
        return trino.dbapi.connect(
            host="127.0.0.1", port=port, user="frazil", catalog=catalog, timezone="UTC", session_properties=session
        )

    return open_one


@pytest.fixture(scope="session")
def on(warehouse, report):
    """Runs a statement on a connection and returns its rows as tuples."""
    report.engine("Trino", coordinator.version())

    def run(connection, statement):
        cursor = connection.cursor()
        cursor.execute(statement)
        rows = [tuple(row) for row in cursor.fetchall()]
        report.ran(warehouse)
        return rows

    return run


@pytest.fixture(scope="session")
def sql(connect, on):
    """Runs a statement on one connection for all."""
    connection = connect()
    return lambda statement: on(connection, statement)


@pytest.fixture
def schema(sql, name):
    sql(f"CREATE SCHEMA {name}")
    return name


@pytest.fixture
def table(sql, schema):
    """A table of readings partitioned by place, with three rows."""
    table = f"{schema}.readings"
    sql(f"CREATE TABLE {table} (id bigint NOT NULL, place varchar, flow double) WITH (partitioning = ARRAY['place'])")
    sql(f"INSERT INTO {table} VALUES (1, 'sound', 0.5), (2, 'sound', 0.7), (3, 'delta', 1.5)")
    return table


@pytest.fixture
def snapshots(sql):
    """The ids of a table's snapshots, oldest first."""

    def find(table):
        schema, name = table.split(".")
        return [id for (id,) in sql(f'SELECT snapshot_id FROM {schema}."{name}$snapshots" ORDER BY committed_at')]

    return find
