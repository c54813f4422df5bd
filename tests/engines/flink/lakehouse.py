"""Flink with the catalog `frazil` in its sessions, every statement counted, and what the tests ask of a table."""

from rest import wait_until

SINKS = {"classic": "false", "v2": "true"}


class Lakehouse:
    def __init__(self, flink, uri, warehouse, rest, report, login=None):
        self.flink = flink
        self.uri = uri
        self.warehouse = warehouse
        self.rest = rest
        self.report = report
        self.login = login

    def batch(self):
        """Opens a fresh session in batch mode."""
        self.open("batch", {})

    def streaming(self, sink="v2", restore=None, **settings):
        """Opens a fresh session in streaming mode; its first job starts from the checkpoint or savepoint `restore`."""
        settings["table.exec.iceberg.use-v2-sink"] = SINKS[sink]
        if restore:
            settings["execution.state-recovery.path"] = restore
        self.open("streaming", settings)

    def open(self, mode, settings):
        self.flink.session(mode, settings)
        self.run(f"CREATE CATALOG frazil WITH ({options(self.catalog())})")

    def catalog(self):
        """The catalog's properties, as a user writes them."""
        catalog = {"type": "iceberg", "catalog-type": "rest", "uri": self.uri, "warehouse": self.warehouse.name}
        if s3 := self.warehouse.s3:
            catalog |= {"s3.access-key-id": s3.access_key_id, "s3.secret-access-key": s3.secret_access_key}
        if self.login:
            catalog |= self.login.properties()
        return catalog

    def run(self, sql):
        self.flink.run(sql)
        self.report.ran(self.warehouse)

    def query(self, sql):
        rows = self.flink.query(sql)
        self.report.ran(self.warehouse)
        return rows

    def wait_for_commits(self, table, count):
        """Waits until the table has that many more snapshots."""
        there = len(self.snapshots(table))
        wait_until(lambda: len(self.snapshots(table)) >= there + count, bound_s=150)

    def start(self, sql):
        """Starts a job and leaves it running; returns its id."""
        job = self.flink.start(sql)
        self.report.ran(self.warehouse)
        return job

    def numbers(self, rows, per_second=1000, first=1):
        """Makes the source `numbers`: that many ids from the first on, then its end."""
        source = {"connector": "datagen", "rows-per-second": per_second, "number-of-rows": rows}
        source |= {"fields.id.kind": "sequence", "fields.id.start": first, "fields.id.end": first + rows - 1}
        self.run(f"CREATE TEMPORARY TABLE numbers (id BIGINT, v INT) WITH ({options(source)})")

    def crash(self):
        """Kills Flink, whatever it is doing, and starts it again."""
        self.flink.kill()
        self.flink.begin()

    def ids(self, relation):
        """How many ids a relation has, how many different ones, the least and the greatest."""
        self.batch()
        return self.query(f"SELECT COUNT(*), COUNT(DISTINCT id), MIN(id), MAX(id) FROM {relation}")[0]

    def files_added_twice(self, table):
        """The data files that more than one entry of the table's manifests says were added."""
        namespace, name = table.removeprefix("frazil.").split(".")
        self.batch()
        return self.query(
            f"""SELECT data_file.file_path, COUNT(*) FROM frazil.{namespace}.`{name}$all_entries`
                WHERE status = 1 GROUP BY data_file.file_path HAVING COUNT(*) > 1"""
        )

    def metadata(self, table):
        """The table's metadata, from the catalog."""
        namespace, name = table.removeprefix("frazil.").split(".")
        return self.rest.call("GET", f"{self.rest.base}/namespaces/{namespace}/tables/{name}")["metadata"]

    def snapshots(self, table):
        """The table's snapshots, oldest first, from the catalog."""
        return sorted(self.metadata(table)["snapshots"], key=lambda snapshot: snapshot["sequence-number"])

    def operations(self, table):
        return [snapshot["summary"]["operation"] for snapshot in self.snapshots(table)]

    def checkpoints(self, table):
        """The checkpoint that each snapshot names, those without one left out."""
        key = "flink.max-committed-checkpoint-id"
        return [int(snapshot["summary"][key]) for snapshot in self.snapshots(table) if key in snapshot["summary"]]


def options(properties):
    """Properties as a WITH clause lists them."""
    return ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
