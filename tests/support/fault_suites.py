"""The proofs with stock clients under faults: each starts a server of its own, kills it, and spoils its answers.

A proof is the same code in both sizes. The small ones belong to every run, the full ones to `tests/run --faults`.
"""

import json
import shutil

import machine
import paths
import process
from bench import Suite

FOLDER = paths.ENGINES / "faults"
# Beside its own modules the folder uses those of the suites of Flink and of Kafka Connect.
PYTHONPATH = "pythonpath=. ../support flink connect"


def proof(suite, test, bound_s, venv="pyiceberg", store="postgres", only=None, **size):
    """Runs the tests of one file in this size."""

    def run(bench, log):
        tools = machine.venv(venv, log)
        folder = paths.RUNS / suite
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        environment = machine.with_java(
            FRAZIL_BINARY=str(bench.binary),
            FRAZIL_DATABASE_URL=bench.store(store).database_url(suite, folder),
            FRAZIL_SUITE=suite,
            FRAZIL_SIZE=json.dumps(size),
        )
        argv = [tools / "python", "-m", "pytest", FOLDER / f"{test}.py", "--basetemp", folder / "pytest"]
        argv += ["-o", PYTHONPATH, *(["-k", only] if only else [])]
        process.run(argv, log, bound_s, cwd=paths.ENGINES, env=environment)

    return run


def full(name, what, needs, run):
    return Suite(f"faults-{name}", what, run, needs, faults=True)


def quick(name, what, needs, run):
    return Suite(f"faults-quick-{name}", what, run, needs)


FLINK = ("pyiceberg", "flink-2.1", "spark-4.1")
SPARK = ("pyiceberg", "spark-4.1")
WRITERS = ("pyiceberg", "connect-sink")
ALL_JOBS = [[sink, kind] for sink in ("classic", "v2") for kind in ("append", "upsert")]

FAULTS = (
    full(
        "flink",
        "Flink, both sinks, 1,000,000 rows each, server killed and answers lost beside maintenance",
        FLINK,
        proof(
            "faults-flink",
            "test_flink",
            3000,
            jobs=ALL_JOBS,
            rows=1_000_000,
            per_second=5000,
            kills=10,
            lost=10,
            calm=3,
        ),
    ),
    full(
        "spark",
        "Spark structured streaming, the same",
        SPARK,
        proof("faults-spark", "test_spark_stream", 1800, rows=1_000_000, per_second=5000, kills=10, lost=10, calm=3),
    ),
    full(
        "dynamic",
        "Flink's dynamic sink, two tables and two branches, killed and restored beside maintenance",
        FLINK,
        proof(
            "faults-dynamic",
            "test_dynamic",
            1800,
            rows=300_000,
            per_second=2000,
            kills=4,
            lost=4,
            calm=7,
            crashes=3,
        ),
    ),
    full(
        "writers",
        "32 PyIceberg and 32 Java writers on one table, with and without rebase",
        WRITERS,
        proof(
            "faults-writers", "test_writers", 1800, threads=32, appends=16, racing_threads=32, racing_appends=2
        ),
    ),
    quick(
        "flink",
        "Flink under faults, both sinks, a small size",
        FLINK,
        proof(
            "faults-quick-flink",
            "test_flink",
            300,
            store="embedded",
            jobs=[["classic", "append"], ["v2", "upsert"]],
            rows=20_000,
            per_second=1000,
            kills=2,
            lost=2,
            calm=2,
        ),
    ),
    quick(
        "writers",
        "PyIceberg and Java writers on one table, a small size",
        WRITERS,
        proof(
            "faults-quick-writers",
            "test_writers",
            200,
            store="embedded",
            threads=8,
            appends=4,
            racing_threads=4,
            racing_appends=2,
        ),
    ),
)
