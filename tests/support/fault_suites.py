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
# Class paths of versions.toml that the tests of a Python environment are told, by the variable's name.
CLASSPATHS = {
    "connect": {
        "KAFKA_CLASSPATH": "connect-kafka",
        "SINK_CLASSPATH": "connect-sink",
        "DEBEZIUM_CLASSPATH": "connect-debezium",
    }
}


def proof(suite, test, bound_s, venv="pyiceberg", store="postgres", only=None, **size):
    """Runs the tests of one file in this size; `only` is an expression of pytest's `-k`.

    Without `keys`, which is part of the size, clients hear nothing of idempotency keys.
    """
    size = {"keys": True, **size}

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
            **{variable: machine.classpath(name, log) for variable, name in CLASSPATHS.get(venv, {}).items()},
        )
        argv = [tools / "python", "-m", "pytest", FOLDER / f"{test}.py", "--basetemp", folder / "pytest"]
        argv += ["-o", PYTHONPATH, "-o", f"faulthandler_timeout={bound_s}", *(["-k", only] if only else [])]
        process.run(argv, log, bound_s, cwd=paths.ENGINES, env=environment)

    return run


FLINK = ("pyiceberg", "flink-2.1", "spark-4.1")
CDC = ("pyiceberg", "flink-1.20", "spark-4.1")
SPARK = ("pyiceberg", "spark-4.1")
CONNECT = ("connect", "connect-kafka", "connect-sink", "connect-debezium")
WRITERS = ("pyiceberg", "connect-sink")


def full(name, what, needs, test, bound_s, **options):
    suite = f"faults-{name}"
    return Suite(suite, what, proof(suite, test, bound_s, **options), needs, faults=True)


def quick(name, what, needs, test, bound_s, **options):
    suite = f"faults-quick-{name}"
    return Suite(suite, what, proof(suite, test, bound_s, store="embedded", **options), needs)


FAULTS = (
    full(
        "flink",
        "Flink, both sinks, 1,000,000 rows a job: kills and lost answers beside maintenance",
        FLINK,
        "test_flink",
        3600,
        rows=1_000_000,
        per_second=5000,
        kills=10,
        lost=10,
        calm=3,
    ),
    full(
        "spark",
        "Spark structured streaming, 1,000,000 rows: the same",
        SPARK,
        "test_spark_stream",
        1800,
        keys=False,
        rows=1_000_000,
        per_second=5000,
        kills=10,
        lost=10,
        calm=3,
    ),
    full(
        "connect",
        "Kafka Connect's sink, 1,000,000 records: commits repeated, late, unanswered; two coordinators",
        CONNECT,
        "test_connect",
        2400,
        venv="connect",
        keys=False,
        records=1_000_000,
        batch=10_000,
        repeated=9,
        kills=10,
        lost=10,
        calm=1,
        zombies=3,
    ),
    full(
        "rewrites",
        "MERGE and compaction over position deletes beside 16 rebased writers",
        SPARK,
        "test_rewrites",
        1200,
        writers=16,
        rounds=5,
        rows=1000,
    ),
    full(
        "dynamic",
        "Flink's dynamic sink, two tables and two branches: killed and restored beside maintenance",
        FLINK,
        "test_dynamic",
        1800,
        keys=False,
        rows=300_000,
        per_second=2000,
        kills=4,
        lost=4,
        calm=7,
        crashes=3,
    ),
    full(
        "cdc",
        "Flink CDC from PostgreSQL: the same",
        CDC,
        "test_cdc",
        1800,
        kills=4,
        lost=4,
        calm=3,
        turns=60,
        turns_a_crash=15,
    ),
    full(
        "writers",
        "32 PyIceberg and 32 Java writers on one table, with rebase and without",
        WRITERS,
        "test_writers",
        1800,
        threads=32,
        appends=16,
        racing_threads=32,
        racing_appends=2,
    ),
    full(
        "zombies",
        "two processes with one identity, a dead job's late commit, all runs under one job id",
        FLINK,
        "test_zombies",
        1200,
        keys=False,
        runs=4,
        rows=10_000,
        per_second=500,
        batch=3000,
        batches=100,
    ),
    quick(
        "flink",
        "Flink under faults, both sinks, a small size",
        FLINK,
        "test_flink",
        400,
        only="classic-append or v2-upsert",
        rows=20_000,
        per_second=1000,
        kills=2,
        lost=2,
        calm=2,
    ),
    quick(
        "spark",
        "Spark structured streaming under faults, a small size",
        SPARK,
        "test_spark_stream",
        300,
        keys=False,
        rows=15_000,
        per_second=1000,
        kills=1,
        lost=2,
        calm=2,
    ),
    quick(
        "connect",
        "Kafka Connect's sink under faults, a small size",
        CONNECT,
        "test_connect",
        400,
        venv="connect",
        keys=False,
        records=10_000,
        batch=1000,
        repeated=3,
        kills=1,
        lost=1,
        calm=1,
        zombies=1,
    ),
    quick(
        "rewrites",
        "one MERGE and one compaction beside 16 rebased writers",
        SPARK,
        "test_rewrites",
        300,
        writers=16,
        rounds=1,
        rows=1000,
    ),
    quick(
        "writers",
        "PyIceberg and Java writers on one table, a small size",
        WRITERS,
        "test_writers",
        200,
        threads=8,
        appends=4,
        racing_threads=4,
        racing_appends=2,
    ),
)
