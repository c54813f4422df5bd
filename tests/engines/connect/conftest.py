"""One broker and one standalone worker per run, connectors with the settings of the page, and readers of tables."""

import broker as kafka
import flow as flows
import machine
import page
import pages
import pytest
import worker as connect
from lake import Lake

PINNED = machine.VERSIONS["maven"]["connect-sink"]


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
def lake(uri, warehouse, login):
    return Lake(uri, warehouse, login)


@pytest.fixture
def sink(uri, warehouse, login):
    """The properties of a sink from the page, for this catalog, this warehouse and this login."""

    def properties(changed, catalog=uri, block="sink"):
        place = {"iceberg.catalog.uri": catalog, "iceberg.catalog.warehouse": warehouse.name}
        return {**page.settings(block, {**place, **changed}), **keys(warehouse), **known(uri, login)}

    return properties


def keys(warehouse):
    """What the sink needs to write the files of a warehouse on S3."""
    if not warehouse.s3:
        return {}
    secrets = {
        "iceberg.catalog.s3.access-key-id": warehouse.s3.access_key_id,
        "iceberg.catalog.s3.secret-access-key": warehouse.s3.secret_access_key,
    }
    return page.settings("sink-s3", secrets)


def known(uri, login):
    """How the sink says who it is, where the catalog asks."""
    lines = pages.logging_in("kafka-connect", uri, login).splitlines() if login else []
    return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def flow(broker, worker, sink, name):
    """Starts a sink from a fresh topic into a fresh table; it ends with the test."""
    started = []

    def start(**where):
        broker.create_topic(name)
        started.append(worker.run(sink(flows.properties(name), **where)))
        return flows.Flow(worker, name, name, flows.table_of(name))

    yield start
    for connector in started:
        worker.delete(connector)
