"""Flink with the catalog `frazil` in its sessions, every statement counted, and what the tests ask of a table."""

import json
import os
import pathlib
import time

SINKS = {"classic": "false", "v2": "true"}
BOUND_S = 120


class Lakehouse:
    def __init__(self, flink, uri, warehouse, report):
        self.flink = flink
        self.uri = uri
        self.warehouse = warehouse
        self.report = report

    def batch(self):
        """A fresh session in batch mode."""
        self.open("batch", {})

    def streaming(self, sink="v2", restore=None, **settings):
        """A fresh session in streaming mode; `restore` is the checkpoint or savepoint that its first job starts from."""
        settings |= {"table.exec.iceberg.use-v2-sink": SINKS[sink]}
        if restore:
            settings |= {"execution.state-recovery.path": restore}
        self.open("streaming", settings)

    def open(self, mode, settings):
        self.flink.session(mode, settings)
        self.run(f"CREATE CATALOG frazil WITH ({options(self.catalog())})")

    def catalog(self):
        """The catalog's properties, as a user writes them."""
        catalog = {"type": "iceberg", "catalog-type": "rest", "uri": self.uri, "warehouse": self.warehouse.name}
        if s3 := self.warehouse.s3:
            catalog |= {"s3.access-key-id": s3.access_key_id, "s3.secret-access-key": s3.secret_access_key}
        return catalog

    def run(self, sql):
        self.flink.run(sql)
        self.report.ran(self.warehouse)

    def query(self, sql):
        rows = self.flink.query(sql)
        self.report.ran(self.warehouse)
        return rows

    def start(self, sql):
        job = self.flink.start(sql)
        self.report.ran(self.warehouse)
        return job

    def numbers(self, rows, per_second=1000):
        """A source `numbers` with the ids 1 to `rows`, which ends there."""
        ids = {"kind": "sequence", "start": 1, "end": rows}
        source = {"connector": "datagen", "rows-per-second": per_second, "number-of-rows": rows}
        source |= {f"fields.id.{key}": value for key, value in ids.items()}
        self.run(f"CREATE TEMPORARY TABLE numbers (id BIGINT, v INT) WITH ({options(source)})")

    def ids(self, relation):
        """How many ids a relation has, how many different ones, the least and the greatest; by a batch session."""
        self.batch()
        return self.query(f"SELECT COUNT(*), COUNT(DISTINCT id), MIN(id), MAX(id) FROM {relation}")[0]

    def files_added_twice(self, table):
        """Data files that more than one snapshot added; by a batch session."""
        namespace, name = table.removeprefix("frazil.").split(".")
        self.batch()
        return self.query(
            f"""SELECT data_file.file_path, COUNT(*) FROM frazil.{namespace}.`{name}$all_entries`
                WHERE status = 1 GROUP BY data_file.file_path HAVING COUNT(*) > 1"""
        )


def options(properties):
    """Properties as a WITH clause lists them."""
    return ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
