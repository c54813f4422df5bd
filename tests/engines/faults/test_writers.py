"""PyIceberg and Java writers that append to one table at once, each as its client does by default."""

import collections
import os
import pathlib
import urllib.parse

import machine
import process
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType
from rest import files_below, wait_until

HERE = pathlib.Path(__file__).parent
READINGS = Schema(NestedField(1, "id", LongType()), NestedField(2, "place", StringType()))
MANY_RETRIES = {
    "commit.retry.num-retries": "10000",
    "commit.retry.min-wait-ms": "20",
    "commit.retry.max-wait-ms": "2000",
}
BOUND_S = 900


@pytest.fixture
def catalog(uri):
    return load_catalog("frazil", type="rest", uri=uri, warehouse="default")


class Race:
    """The two programs, which begin together and append as many rows as they are told, one by one."""

    def __init__(self, folder, log, uri, table):
        self.folder, self.log, self.uri, self.table = folder, log, uri, table

    def run(self, threads, appends):
        """Runs both to their end; each must succeed. Returns the ids that are there then."""
        counts = (threads, appends)
        python = machine.venv("pyiceberg", self.log) / "python"
        java = [f"{machine.java_home()}/bin/java", "-Xmx1g", "-cp", machine.classpath("connect-sink", self.log)]
        programs = ([python, HERE / "appends.py"], [*java, HERE / "Appends.java"])
        firsts = [number * threads * appends for number in range(len(programs))]
        children = [self.begin(*pair, *counts) for pair in zip(programs, firsts, strict=True)]
        try:
            wait_until(lambda: len(list(self.folder.glob("ready-*"))) == len(children), bound_s=120)
            (self.folder / "go").touch()
            for child in children:
                assert child.wait(BOUND_S) == 0, f"a writer failed: see {self.log.name}"
        finally:
            for child in children:
                process.end_group(child)
        return list(range(len(programs) * threads * appends))

    def begin(self, program, first, threads, appends):
        argv = [*program, self.uri, self.table, self.folder, first, threads, appends]
        return process.start(argv, self.log, cwd=self.folder, env=machine.with_java())


def test_every_append_succeeds_at_the_first_attempt(catalog, between, namespace, size, tell, tmp_path, log):
    table = make(catalog, namespace, {"frazil.commit.rebase": "append", "frazil.commit.rebase.anonymous": "true"})
    written = Race(tmp_path, log, between.uri, f"{namespace}.readings").run(size.threads, size.appends)

    assert [commit.statuses for commit in between.commits] == [[200]] * len(written)
    table.refresh()
    assert ids(table) == written
    assert int(table.current_snapshot().summary["total-records"]) == len(written)
    assert len(table.metadata.snapshots) == len(written)
    left = unreferenced(table)
    tell(appends=len(written), spare_lists=len(left["list"]))
    assert left["data"] == left["manifest"] == set()


def test_without_rebase_one_writer_wins_each_round(catalog, between, namespace, size, tell, tmp_path, log):
    table = make(catalog, namespace, {"frazil.commit.rebase": "off", **MANY_RETRIES})
    written = Race(tmp_path, log, between.uri, f"{namespace}.readings").run(size.racing_threads, size.racing_appends)

    rounds = collections.defaultdict(list)
    for commit in between.commits:
        rounds[commit.asserted] += commit.statuses
    outcomes = collections.Counter(status for statuses in rounds.values() for status in statuses)
    tell(appends=len(written), outcomes=outcomes)
    assert set(outcomes) <= {200, 409}
    # Whoever is refused has lost to another: each base is built upon once.
    assert [statuses.count(200) for statuses in rounds.values()] == [1] * len(written)
    assert ids(table.refresh()) == written
    left = unreferenced(table)
    assert left["data"] == left["manifest"] == set()


def make(catalog, namespace, properties):
    return catalog.create_table(f"{namespace}.readings", READINGS, properties=properties)


def ids(table):
    return sorted(table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())


KINDS = {"snap-": "list", ".avro": "manifest", ".parquet": "data"}


def unreferenced(table):
    """The files of a table that no snapshot of it needs, by kind."""
    left = {kind: set() for kind in KINDS.values()}
    for file in files_below(table.location()):
        kind = next((kind for mark, kind in KINDS.items() if mark in file.name), None)
        if kind:
            left[kind].add(str(file))
    snapshots = table.metadata.snapshots
    left["list"] -= {path(snapshot.manifest_list) for snapshot in snapshots}
    # The newest needs most of them, so that few lists are read.
    for snapshot in reversed(snapshots):
        if left["manifest"] or left["data"]:
            take_out(table, snapshot, left)
    return left


def take_out(table, snapshot, left):
    """Takes a snapshot's manifests and their files out of those that are left."""
    for manifest in snapshot.manifests(table.io):
        if path(manifest.manifest_path) in left["manifest"]:
            left["manifest"].remove(path(manifest.manifest_path))
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=False)
            left["data"] -= {path(entry.data_file.file_path) for entry in entries}


def path(location):
    return os.path.normpath(urllib.parse.urlsplit(location).path)
