"""One Flink per run, the catalog in its sessions, and a namespace to work in.

With FRAZIL_RECORD set to a folder, the summaries of the snapshots that Flink wrote are stored there, one file per kind
of writer; `tests/writers` has those of one run.
"""

import json
import os
import pathlib

import flink as engine
import pytest
from lakehouse import SINKS, Lakehouse


@pytest.fixture(scope="session")
def flink(tmp_path_factory, report):
    report.engine("Flink", os.environ["FLINK_VERSION"])
    with engine.running(os.environ["FLINK_CLASSPATH"], tmp_path_factory.mktemp("flink")) as flink:
        yield flink


@pytest.fixture
def lake(flink, uri, warehouse, rest, report, login):
    """Flink with the catalog `frazil`; a batch session is open."""
    lake = Lakehouse(flink, uri, warehouse, rest, report, login)
    lake.batch()
    yield lake
    flink.cancel_all()


@pytest.fixture(params=SINKS)
def sink(request):
    """Both of Iceberg's sinks for one table."""
    return request.param


@pytest.fixture
def namespace(lake, name):
    """A fresh namespace, with the catalog's name before it."""
    lake.run(f"CREATE DATABASE frazil.{name}")
    return f"frazil.{name}"


@pytest.fixture
def numbers(lake, namespace):
    """An empty table for the rows of the source `numbers`."""
    table = f"{namespace}.numbers"
    lake.run(f"CREATE TABLE {table} (id BIGINT, v INT)")
    return table


@pytest.fixture
def record(lake):
    """Stores the snapshots of a table as examples of what a kind of writer leaves."""

    def write(kind, table):
        folder = os.environ.get("FRAZIL_RECORD")
        if folder:
            examples = [example(snapshot) for snapshot in lake.snapshots(table)]
            pathlib.Path(folder, f"flink-{kind}.json").write_text(json.dumps(examples, indent=1) + "\n")

    return write


def example(snapshot):
    summary = dict(snapshot["summary"])
    told = {"operation": summary.pop("operation"), "summary": summary, "id": snapshot["snapshot-id"]}
    if "parent-snapshot-id" in snapshot:
        told["parent"] = snapshot["parent-snapshot-id"]
    return told
