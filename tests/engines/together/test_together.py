"""Several engines on one table at once: Flink streams in, Spark compacts and expires, Trino and DuckDB read."""

import contextlib
import pathlib
import time

import coordinator
import flink
import machine
import paths
import process
import pytest
import turns

HERE = pathlib.Path(__file__).parent
GROUPS, GROUPS_A_SECOND = 1600, 40
READERS = ("trino", "duckdb")
BOUND_S = 120


@pytest.fixture
def log():
    with open(paths.LOGS / "together.engines.log", "w") as log:
        yield log


@pytest.fixture
def stream(tmp_path, log, uri, warehouse, name):
    """Flink with an empty table and the stream that is to fill it, not started yet."""
    with flink.running(machine.classpath("flink-2.1", log), tmp_path) as engine:
        engine.session("streaming", {"table.exec.iceberg.use-v2-sink": "true"})
        engine.run(
            f"""CREATE CATALOG frazil WITH
                ('type' = 'iceberg', 'catalog-type' = 'rest', 'uri' = '{uri}', 'warehouse' = '{warehouse.name}')"""
        )
        engine.run(f"CREATE DATABASE frazil.{name}")
        engine.run(f"CREATE TABLE frazil.{name}.flow (id BIGINT, share BIGINT)")
        engine.run(
            f"""CREATE TEMPORARY TABLE numbers (id BIGINT) WITH ('connector' = 'datagen',
                'rows-per-second' = '{GROUPS_A_SECOND}', 'number-of-rows' = '{GROUPS}',
                'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '{GROUPS}')"""
        )
        yield Stream(engine, f"{name}.flow")


class Stream:
    def __init__(self, engine, table):
        self.engine = engine
        self.table = table

    def run(self):
        """Writes all groups. The unnested array belongs to a record, so that no checkpoint comes in between."""
        self.engine.run(
            f"""INSERT INTO frazil.{self.table}
                SELECT id, share FROM numbers CROSS JOIN UNNEST(ARRAY[id, 2 * id, -3 * id]) AS shares (share)"""
        )


@pytest.fixture
def others(tmp_path, log, uri, warehouse, stream):
    """The readers and the keeper, each in a process of its own, all of them past their first turn."""
    catalogs = {"frazil": coordinator.catalog(warehouse, uri)}
    with contextlib.ExitStack() as running:
        port = running.enter_context(coordinator.running(catalogs, tmp_path, log))
        jar = machine.jar("spark-4.1", log)
        programs = {
            "trino": ("trino", "read_trino.py", tmp_path, port, stream.table),
            "duckdb": ("duckdb", "read_duckdb.py", tmp_path, uri, warehouse.name, stream.table),
            "spark": ("spark-4.1", "keep_spark.py", tmp_path, jar, uri, warehouse.name, stream.table),
        }
        others = Others(tmp_path, {name: program(log, *words) for name, words in programs.items()})
        running.callback(others.stop)
        others.wait_for_first_turns()
        yield others


def program(log, venv, file, *arguments):
    argv = [machine.venv(venv, log) / "python", HERE / file, *arguments]
    return process.start(argv, log, cwd=HERE, env=machine.with_java())


class Others:
    def __init__(self, folder, programs):
        self.folder = folder
        self.programs = programs

    def told(self, name):
        return turns.told(self.folder, name)

    def wait_for_first_turns(self):
        end = time.monotonic() + BOUND_S
        while not all(self.told(name) for name in self.programs):
            for name, child in self.programs.items():
                assert child.poll() is None, f"{name} did not begin: see together.engines.log"
            assert time.monotonic() < end
            time.sleep(0.2)

    def finish(self):
        """Lets each take its last turn, after the stream's end."""
        (self.folder / turns.ENDED).touch()
        for name, child in self.programs.items():
            assert child.wait(BOUND_S) == 0, f"{name} failed: see together.engines.log"

    def stop(self):
        for child in self.programs.values():
            process.end_group(child)


def test_every_reader_sees_whole_snapshots_while_others_write_and_compact(stream, others, report, warehouse):
    stream.run()
    others.finish()

    kept = others.told("spark")
    committed = {records for turn in kept for records in turn["records"]}
    for reader in READERS:
        readings = others.told(reader)
        assert [reading for reading in readings if reading["broken"]] == []
        assert {reading["rows"] for reading in readings} <= committed | {0}
        assert [reading["groups"] for reading in readings] == sorted(reading["groups"] for reading in readings)
        assert any(0 < reading["groups"] < GROUPS for reading in readings)
        assert readings[-1] == {"groups": GROUPS, "rows": turns.ROWS * GROUPS, "broken": 0}
    assert sum(turn["rewritten"] for turn in kept) > 0
    assert sum(turn["deleted"] for turn in kept) > 0
    tell(report, warehouse, others)


def tell(report, warehouse, others):
    """One row for all: what they did apart stands in the rows of their own suites."""
    versions = {
        "Flink": machine.VERSIONS["maven"]["flink-2.1"]["flink.version"],
        "Spark": pinned("spark-4.1", "pyspark"),
        "Trino": coordinator.version(),
        "DuckDB": pinned("duckdb", "duckdb"),
    }
    report.engine(f"{', '.join(versions)} at once", ", ".join(versions.values()))
    report.ran(warehouse, 1 + sum(len(others.told(name)) for name in others.programs))


def pinned(venv, package):
    pins = dict(pin.split("==") for pin in machine.VERSIONS["venv"][venv])
    return pins[package]
