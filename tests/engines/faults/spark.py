"""Spark in a process of its own, and what the proofs ask of it."""

import contextlib
import json
import pathlib
import threading
import urllib.request

import machine
import process

DOOR = pathlib.Path(__file__).with_name("spark_door.py")
READY_WITHIN_S = 180
ANSWER_WITHIN_S = 900


class SparkError(Exception):
    """What Spark answered to a statement that failed."""


class Spark:
    def __init__(self, port):
        self.address = f"http://127.0.0.1:{port}/"

    def ask(self, action, **request):
        body = json.dumps({"do": action, **request}).encode()
        with urllib.request.urlopen(self.address, body, timeout=ANSWER_WITHIN_S) as answer:
            told = json.load(answer)
        if "error" in told:
            raise SparkError(told["error"])
        return told["answer"]

    def sql(self, statement):
        """The rows that a statement finds, as tuples."""
        return [tuple(row) for row in self.ask("sql", statement=statement)]

    def stream(self, table, checkpoint, rows_per_batch, every):
        """Starts a query that appends a batch of rows `every` so long, from where its checkpoint folder stands."""
        self.ask("stream", table=table, checkpoint=str(checkpoint), rows_per_batch=rows_per_batch, every=every)

    def ids(self, relation):
        """How many ids a relation has, how many different ones, the least and the greatest."""
        return self.sql(f"SELECT count(*), count(DISTINCT id), min(id), max(id) FROM {relation}")[0]

    def files_twice(self, table):
        """The files that the current snapshot lists twice, and those that two entries of its history say were added."""
        return self.sql(
            f"""SELECT data_file.file_path FROM {table}.entries WHERE status < 2 GROUP BY ALL HAVING count(*) > 1
                UNION ALL
                SELECT data_file.file_path FROM {table}.all_entries WHERE status = 1 GROUP BY ALL HAVING count(*) > 1"""
        )


@contextlib.contextmanager
def running(folder, log, **catalogs):
    """Spark for the length of the block, with catalogs by name: their URIs."""
    port = process.free_port()
    argv = [machine.venv("spark-4.1", log) / "python", DOOR, port, folder, machine.jar("spark-4.1", log)]
    argv += [f"{name}={uri}" for name, uri in catalogs.items()]
    child = process.start(argv, log, cwd=folder, env=machine.with_java())
    try:
        process.wait_until_ready(child, "Spark", lambda: not process.is_free(port), READY_WITHIN_S, log.name)
        yield Spark(port)
    finally:
        process.end_group(child)


COMPACT = "CALL frazil.system.rewrite_data_files(table => '{table}', options => map('min-input-files', '2'))"
# Longer than a stream takes to come back after a fault, so that it finds what it committed last.
RETAINED = 10
EXPIRE = (
    "CALL frazil.system.expire_snapshots(table => '{table}',"
    f" older_than => TIMESTAMP '2100-01-01 00:00:00', retain_last => {RETAINED})"
)
PAUSE_S = 1


class Keeper:
    """Compacts tables and expires their snapshots, over and over, as a schedule of an operator does."""

    def __init__(self, spark, tables):
        self.spark = spark
        # How often each call has changed something.
        self.changed = {call.format(table=table): 0 for table in tables for call in (COMPACT, EXPIRE)}
        self.refused = []
        self.over = threading.Event()

    def keep(self):
        while not self.over.wait(PAUSE_S):
            # A call may fail, as the server is killed meanwhile and others write; its next turn comes.
            self.refused += self.take_turn()

    def take_turn(self):
        """Makes each call once; returns what was said to those that failed."""
        refused = []
        for call in self.changed:
            try:
                (counts,) = self.spark.sql(call)
            except SparkError as error:
                refused.append(str(error))
            else:
                self.changed[call] += any(counts)
        return refused

    def figures(self):
        return {"compactions and expiries": list(self.changed.values()), "refused": len(self.refused)}


@contextlib.contextmanager
def keeping(spark, *tables):
    """A keeper at work for the length of the block, which ends with a turn of which nothing may fail."""
    keeper = Keeper(spark, tables)
    thread = threading.Thread(target=keeper.keep, daemon=True)
    thread.start()
    try:
        yield keeper
    finally:
        keeper.over.set()
        thread.join(ANSWER_WITHIN_S)
    assert keeper.take_turn() == []
