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


CONNECT_CLASSPATHS = {
    "KAFKA_CLASSPATH": "connect-kafka",
    "SINK_CLASSPATH": "connect-sink",
    "DEBEZIUM_CLASSPATH": "connect-debezium",
}


def proof(suite, test, bound_s, venv="pyiceberg", store="postgres", only=None, classpaths={}, **size):
    """Runs the tests of one file in this size; `classpaths` are names of versions.toml by environment variable."""

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
            **{variable: machine.classpath(name, log) for variable, name in classpaths.items()},
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
CDC = ("pyiceberg", "flink-1.20", "spark-4.1")
CONNECT = ("connect", "connect-kafka", "connect-sink", "connect-debezium")
WRITERS = ("pyiceberg", "connect-sink")

FAULTS = (
    full(
        "flink",
        "Flink, both sinks, 1,000,000 rows each, server killed and answers lost beside maintenance",
        FLINK,
        proof(
            "faults-flink",
            "test_flink",
            3000,
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
        "cdc",
        "Flink CDC from PostgreSQL, killed and restored beside maintenance",
        CDC,
        proof("faults-cdc", "test_cdc", 1800, kills=4, lost=4, calm=3, turns=60, turns_a_crash=15),
    ),
    full(
        "connect",
        "Kafka Connect's sink: commits repeated, late, unanswered, and two coordinators",
        CONNECT,
        proof(
            "faults-connect",
            "test_connect",
            2400,
            venv="connect",
            classpaths=CONNECT_CLASSPATHS,
            records=1_000_000,
            batch=10_000,
            repeated=9,
            kills=10,
            lost=10,
            calm=1,
            zombies=3,
        ),
    ),
    full(
        "rewrites",
        "MERGE and compaction over position deletes beside 16 writers whose appends are rebased",
        SPARK,
        proof("faults-rewrites", "test_rewrites", 1200, writers=16, rounds=5, rows=1000),
    ),
    full(
        "zombies",
        "two processes with one identity, late commits of dead jobs, every run under one job id",
        FLINK,
        proof("faults-zombies", "test_zombies", 1200, runs=4, rows=20_000, per_second=500, batch=3000, batches=60),
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
            400,
            store="embedded",
            only="classic-append or v2-upsert",
            rows=20_000,
            per_second=1000,
            kills=2,
            lost=2,
            calm=2,
        ),
    ),
    quick(
        "spark",
        "Spark structured streaming under faults, a small size",
        SPARK,
        proof(
            "faults-quick-spark",
            "test_spark_stream",
            300,
            store="embedded",
            rows=15_000,
            per_second=1000,
            kills=1,
            lost=2,
            calm=2,
        ),
    ),
    quick(
        "connect",
        "Kafka Connect's sink: repeated commits and two coordinators, a small size",
        CONNECT,
        proof(
            "faults-quick-connect",
            "test_connect",
            400,
            venv="connect",
            store="embedded",
            classpaths=CONNECT_CLASSPATHS,
            records=10_000,
            batch=1000,
            repeated=3,
            kills=1,
            lost=1,
            calm=1,
            zombies=1,
        ),
    ),
    quick(
        "rewrites",
        "MERGE and compaction beside 16 writers, one of each",
        SPARK,
        proof("faults-quick-rewrites", "test_rewrites", 300, store="embedded", writers=16, rounds=1, rows=1000),
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
