"""A server that is killed, a proxy before it that spoils commits, and the clients that must not notice.

`tests/run --faults` runs each proof in its full size, and `tests/run` some of them in a small one: the size is the JSON
object FRAZIL_SIZE. FRAZIL_BINARY, FRAZIL_DATABASE_URL and FRAZIL_SUITE name the server to start.
"""

import json
import os
from types import SimpleNamespace

import flink as flinks
import machine
import node as nodes
import paths
import proxy
import pytest
import spark as sparks
from lakehouse import Lakehouse
from rest import Rest

SUITE = os.environ.get("FRAZIL_SUITE", "faults")
told = []


@pytest.fixture(scope="session")
def size():
    return SimpleNamespace(**json.loads(os.environ["FRAZIL_SIZE"]))


@pytest.fixture(scope="session")
def log():
    with open(paths.LOGS / f"{SUITE}.engines.log", "w") as log:
        yield log


@pytest.fixture(scope="session")
def node(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    database = os.environ.get("FRAZIL_DATABASE_URL", f"sqlite:{folder / 'frazil.db'}")
    with nodes.running(os.environ["FRAZIL_BINARY"], folder, database, paths.LOGS / f"{SUITE}.server.log") as node:
        yield node


@pytest.fixture(scope="session")
def uri(node):
    """The server itself, with nothing before it."""
    return node.uri


@pytest.fixture(scope="session")
def proxied(uri, size):
    with proxy.running(uri, keys=size.keys) as between:
        yield between


@pytest.fixture
def between(proxied):
    """The proxy, with no commit and no fault of an earlier test."""
    proxied.commits.clear()
    proxied.faults.clear()
    return proxied


@pytest.fixture(scope="session")
def spark(tmp_path_factory, log, uri, proxied):
    """Spark, with the catalog `frazil` and, through the proxy, the same catalog as `stormy`."""
    with sparks.running(tmp_path_factory.mktemp("spark"), log, frazil=uri, stormy=proxied.uri) as spark:
        yield spark


@pytest.fixture(scope="module")
def flink(request, tmp_path_factory, log, report):
    line = getattr(request.module, "FLINK", "flink-2.1")
    report.engine("Flink", machine.VERSIONS["maven"][line]["flink.version"])
    with flinks.running(machine.classpath(line, log), tmp_path_factory.mktemp("flink")) as flink:
        yield flink


@pytest.fixture
def lake(flink, between, warehouse, uri, report):
    """Flink with the catalog `frazil`, which it reaches through the proxy; a batch session is open."""
    lake = Lakehouse(flink, between.uri, warehouse, Rest(uri), report)
    lake.batch()
    yield lake
    flink.cancel_all()


@pytest.fixture
def namespace(rest, name):
    """A fresh namespace."""
    rest.call("POST", f"{rest.base}/namespaces", {"namespace": [name]})
    return name


@pytest.fixture
def tell(request):
    """Keeps figures of a proof for the end of its log."""
    return lambda **figures: told.append(f"{request.node.name}: {json.dumps(figures)}")


def pytest_terminal_summary(terminalreporter):
    if told:
        terminalreporter.section("figures")
        for line in told:
            terminalreporter.line(line)
