"""The tables of a warehouse as a reader sees them, and what the sink left in their snapshots."""

import json
import os
import pathlib
import time

from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError

ARRIVE_WITHIN_S = 180


class Lake:
    """A warehouse, read through PyIceberg."""

    def __init__(self, uri, warehouse, login=None):
        known = login.properties() if login else {}
        settings = {"type": "rest", "uri": uri, "warehouse": warehouse.name, **credentials(warehouse), **known}
        self.catalog = load_catalog("frazil", **settings)

    def table(self, name):
        return self.catalog.load_table(name)

    def rows(self, name, *columns):
        """The rows of a table as tuples, sorted, doubles included."""
        read = self.table(name).scan(selected_fields=columns).to_arrow()
        return sorted(zip(*(read[column].to_pylist() for column in columns), strict=True))

    def ids(self, name):
        return sorted(id for (id,) in self.rows(name, "id"))

    def count(self, name):
        """The rows that the current snapshot counts; 0 before there is one."""
        try:
            current = self.table(name).current_snapshot()
        except NoSuchTableError:
            return 0
        return int(current.summary["total-records"]) if current else 0

    def wait_for_rows(self, name, wanted, bound_s=ARRIVE_WITHIN_S):
        end = time.monotonic() + bound_s
        while (found := self.count(name)) < wanted:
            assert time.monotonic() < end, f"{found} of {wanted} rows in {name} after {bound_s} s"
            time.sleep(0.2)

    def snapshots(self, name):
        """What each snapshot tells of itself, oldest first."""
        return [example(snapshot) for snapshot in self.table(name).metadata.snapshots]

    def commits(self, name):
        return len(self.table(name).metadata.snapshots)

    def record(self, name, as_file):
        """Keeps the snapshots of a table as `kafka-connect-….json` in the folder FRAZIL_RECORD, where that is set."""
        if folder := os.environ.get("FRAZIL_RECORD"):
            file = pathlib.Path(folder, f"kafka-connect-{as_file}.json")
            file.write_text(json.dumps(self.snapshots(name), indent=1) + "\n")


def example(snapshot):
    summary = snapshot.summary
    told = {"operation": summary.operation.value, "summary": summary.additional_properties, "id": snapshot.snapshot_id}
    return told if snapshot.parent_snapshot_id is None else {**told, "parent": snapshot.parent_snapshot_id}


def credentials(warehouse):
    """What a reader needs beside what the catalog tells it."""
    if not warehouse.s3:
        return {}
    keys = {"s3.access-key-id": warehouse.s3.access_key_id, "s3.secret-access-key": warehouse.s3.secret_access_key}
    return {**keys, "s3.endpoint": warehouse.s3.endpoint, "s3.region": warehouse.s3.region}
