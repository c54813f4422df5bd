"""One broker and one standalone worker per run, and connectors that carry JSON records of a fresh topic to a fresh table."""

from dataclasses import dataclass

import broker as kafka
import machine
import page
import pytest
import worker as connect
from lake import Lake

PINNED = machine.VERSIONS["maven"]["connect-sink"]
COMMIT_EVERY_MS = 1000


@dataclass(frozen=True)
class Flow:
    """A running sink: the worker that was asked for it, its connector, its topic, and the table that it fills."""

    worker: connect.Worker
    connector: str
    topic: str
    table: str

    def states(self):
        return self.worker.states(self.connector)


@pytest.fixture(autouse=True)
def engine(report):
    report.engine("Kafka Connect", f"{PINNED['kafka.version']}, sink {PINNED['iceberg.version']}")


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("connect")


@pytest.fixture(scope="session")
def broker(home):
    with kafka.running(home) as broker:
        yield broker


@pytest.fixture(scope="session")
def plugins(home):
    return connect.plugins(home / "plugins")


@pytest.fixture(scope="session")
def worker(home, broker, plugins):
    """A standalone worker with the settings of the page, its addresses and folders apart."""
    addresses = {
        "bootstrap.servers": broker.address,
        "plugin.path": plugins,
        "offset.storage.file.filename": home / "offsets",
    }
    with connect.running(connect.standalone(home, page.settings("standalone-worker", addresses))) as (worker,):
        yield worker


@pytest.fixture
def lake(uri, warehouse):
    return Lake(uri, warehouse)


@pytest.fixture
def sink(uri, warehouse):
    """The properties of a sink from the page, for this catalog and this warehouse."""

    def properties(changed, catalog=uri, block="sink"):
        place = {"iceberg.catalog.uri": catalog, "iceberg.catalog.warehouse": warehouse.name}
        return {**page.settings(block, {**place, **changed}), **storage(warehouse)}

    return properties


def storage(warehouse):
    if warehouse.scheme != "s3":
        return {}
    secrets = {
        "iceberg.catalog.s3.access-key-id": warehouse.s3.access_key_id,
        "iceberg.catalog.s3.secret-access-key": warehouse.s3.secret_access_key,
    }
    return page.settings("sink-s3", secrets)


@pytest.fixture
def flow(broker, worker, sink, name):
    """Starts a sink from a fresh topic into a fresh table; it ends with the test."""
    started = []

    def start(**where):
        broker.create_topic(name)
        started.append(worker.run(sink(fresh(name), **where)))
        return Flow(worker, name, name, table_of(name))

    yield start
    for connector in started:
        worker.delete(connector)


def fresh(name):
    """What a sink of this name has for itself."""
    return {
        "name": name,
        "topics": name,
        "iceberg.tables": table_of(name),
        "iceberg.control.topic": f"control-{name}",
        "iceberg.control.commit.interval-ms": COMMIT_EVERY_MS,
    }


def table_of(name):
    return f"{name}.readings"
