"""One Flink per run, and a namespace to work in."""

import os

import flink as engine
import pytest
from lakehouse import SINKS, Lakehouse


@pytest.fixture(scope="session")
def flink(tmp_path_factory, report):
    report.engine("Flink", os.environ["FLINK_VERSION"])
    with engine.running(os.environ["FLINK_CLASSPATH"], tmp_path_factory.mktemp("flink")) as flink:
        yield flink


@pytest.fixture
def lake(flink, uri, warehouse, report):
    return Lakehouse(flink, uri, warehouse, report)
