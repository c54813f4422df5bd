"""The suites of stock clients: each starts a server of its own and, where the client reaches it, uses the S3 store."""

import os

import javascript
import libraries
import machine
import pages
import paths
import process
import rck
import readme
from bench import Suite
from server import LAKE, serving


def kit(store):
    return lambda bench, log: rck.run(bench.binary, f"rck-{store}", bench.store(store), log)


FILES, S3, BOTH = ("default",), (LAKE,), ("default", LAKE)


def client(folder, suite, venv, store="embedded", warehouses=FILES, bound_s=900, only=None, **settings):
    """The pytest suite in `tests/engines/FOLDER`, run by the Python environment `venv` against a fresh server.

    `only` is an expression of pytest's `-k`; `settings` are further environment variables.
    """

    def run(bench, log):
        s3 = bench.s3 if LAKE in warehouses else None
        with serving(bench.binary, suite, bench.store(store), s3=s3) as frazil:
            environment = {**settings, **told(frazil, suite, store, warehouses, s3)}
            drive(frazil, folder, venv, log, bound_s, only, **environment)

    return run


def drive(frazil, folder, venv, log, bound_s, only=None, **environment):
    """Runs the tests in `tests/engines/FOLDER` once, against a server that is there."""
    tools = machine.venv(venv, log)
    argv = [tools / "python", "-m", "pytest", paths.ENGINES / folder, "--basetemp", frazil.data_dir / "pytest"]
    argv += ["-k", only] if only else []
    process.run(argv, log, bound_s, cwd=paths.ENGINES, env=machine.with_java(**environment))


STORES = {"embedded": "SQLite", "postgres": "PostgreSQL"}


def told(frazil, suite, store, warehouses, s3):
    """What the suite of a client is told by its environment."""
    return {
        "FRAZIL_URI": frazil.uri,
        "FRAZIL_STORE": STORES[store],
        "FRAZIL_WAREHOUSES": ",".join(warehouses),
        "FRAZIL_REPORT": str(paths.REPORTS / f"{suite}.json"),
        **(s3.environment() if s3 else {}),
    }


def pyiceberg(store, suite=None, warehouses=FILES):
    return client("pyiceberg", suite or f"pyiceberg-{store}", "pyiceberg", store, warehouses)


def spark(version, store, suite=None, warehouses=FILES):
    name = f"spark-{version}"

    def run(bench, log):
        jars = [name, "spark-s3"] if LAKE in warehouses else [name]
        client("spark", suite or name, name, store, warehouses, **spark_settings(jars, log))(bench, log)

    return run


def spark_settings(jars, log):
    """What the suite of Spark is told: its jars, by their names in versions.toml."""
    return {"ICEBERG_SPARK_JARS": ",".join(str(machine.jar(name, log)) for name in jars)}


def library(suite, test):
    """A suite in the client's own language, on both kinds of warehouses; `test` gets its environment."""

    def run(bench, log):
        with serving(bench.binary, suite, bench.store("embedded"), s3=bench.s3) as frazil:
            test(log, **told(frazil, suite, "embedded", BOTH, bench.s3))

    return run


def flink(suite, line, only, **options):
    """Those tests of `tests/engines/flink` that `only` names, on a line of Flink's versions."""

    def run(bench, log):
        client("flink", suite, "pytest", only=only, **options, **flink_settings(line, log))(bench, log)

    return run


def flink_settings(line, log):
    """What the suite of Flink is told."""
    pinned = machine.VERSIONS["maven"][line]
    version = pinned["flink.version"]
    if "flink-cdc.version" in pinned:
        version += f" with CDC {pinned['flink-cdc.version']}"
    return {"FLINK_CLASSPATH": machine.classpath(line, log), "FLINK_VERSION": version}


def connect(suite, bound_s, **options):
    def run(bench, log):
        client("connect", suite, "connect", bound_s=bound_s, **options, **connect_settings(log))(bench, log)

    return run


def connect_settings(log):
    """What the suite of Kafka Connect is told beside the catalog."""
    parts = {"kafka": "KAFKA_CLASSPATH", "sink": "SINK_CLASSPATH", "debezium": "DEBEZIUM_CLASSPATH"}
    return {variable: machine.classpath(f"connect-{part}", log) for part, variable in parts.items()}


CONNECT = ("connect", "connect-kafka", "connect-sink", "connect-debezium")
CONNECT_QUICK = "test_sink or test_repeated_commits"
# What the quick suite runs on files and SQLite runs here on S3 and PostgreSQL.
CONNECT_WIDE = f"test_workers or test_debezium or (s3 and ({CONNECT_QUICK}))"
FLINK_QUICK = "test_tables or test_streams"
FLINK_WIDE = "not test_tables and not test_streams and not test_cdc"
FLINK_S3 = "test_streams or test_maintenance"


def schemathesis(bench, log):
    tools = machine.venv("schemathesis", log)
    with serving(bench.binary, "schemathesis", bench.store("embedded")) as frazil:
        folder = paths.ENGINES / "schemathesis"
        environment = {**os.environ, "FRAZIL_URI": frazil.uri}
        process.run([tools / "python", folder / "seed.py"], log, 60, env=environment)
        argv = [tools / "schemathesis", "--config-file", folder / "schemathesis.toml", "run"]
        argv += [paths.REPO / "openapi" / "frazil.yaml", "--url", frazil.uri]
        process.run(argv, log, 600, cwd=frazil.data_dir, env=environment)


def snippets(bench, log):
    document = paths.REPO / "README.md"
    readme.check_quotes(document, (paths.REPO / "docs" / "engines").glob("*.md"))
    readme.run(bench.binary, "readme", [document], ("pyiceberg", "spark-4.1"), log)


def page(engine):
    """The snippets of an engine's page in docs/engines."""
    return lambda bench, log: readme.run(bench.binary, f"page-{engine}", [pages.page(engine)], (), log)


ENGINES = (
    Suite("rck-embedded", "Iceberg's compatibility kit, SQLite", kit("embedded")),
    Suite("rck-postgres", "Iceberg's compatibility kit, PostgreSQL", kit("postgres")),
    Suite("pyiceberg-embedded", "PyIceberg end to end, SQLite", pyiceberg("embedded"), ("pyiceberg",)),
    Suite("pyiceberg-postgres", "PyIceberg end to end, PostgreSQL", pyiceberg("postgres"), ("pyiceberg",)),
    Suite("spark-3.5", "Spark 3.5, PostgreSQL", spark("3.5", "postgres"), ("spark-3.5",)),
    Suite("spark-4.1", "Spark 4.1, SQLite", spark("4.1", "embedded"), ("spark-4.1",)),
    Suite(
        "spark-s3",
        "Spark 4.1 on S3, SQLite",
        spark("4.1", "embedded", "spark-s3", S3),
        ("spark-4.1", "spark-s3"),
        wide=True,
    ),
    Suite(
        "pyiceberg-s3",
        "PyIceberg on S3, SQLite",
        pyiceberg("embedded", "pyiceberg-s3", S3),
        ("pyiceberg",),
        wide=True,
    ),
    Suite("duckdb", "DuckDB on local files and S3", client("duckdb", "duckdb", "duckdb", warehouses=BOTH), ("duckdb",)),
    Suite(
        "clickhouse",
        "ClickHouse in a process, on local files and S3",
        client("clickhouse", "clickhouse", "clickhouse", warehouses=BOTH),
        ("clickhouse",),
    ),
    Suite(
        "daft",
        "Daft on local files and S3",
        client("daft", "daft", "daft", warehouses=BOTH, DO_NOT_TRACK="1"),
        ("daft",),
        wide=True,
    ),
    Suite(
        "polars",
        "Polars on local files and S3",
        client("polars", "polars", "polars", warehouses=BOTH, POLARS_ICEBERG_PLANNER="pyiceberg"),
        ("polars",),
        wide=True,
    ),
    Suite(
        "javascript",
        "iceberg-js on local files and S3",
        library("javascript", javascript.test),
        ("javascript",),
        ("node",),
        wide=True,
    ),
    Suite("go", "iceberg-go on local files and S3", library("go", libraries.test_go), ("go",), ("go",), wide=True),
    Suite(
        "rust",
        "iceberg-rust with DataFusion on local files and S3",
        library("rust", libraries.test_rust),
        ("rust",),
        wide=True,
    ),
    Suite(
        "connect-quick",
        "Kafka Connect with Iceberg's sink, commits that arrive twice, SQLite",
        connect("connect-quick", 600, only=CONNECT_QUICK),
        CONNECT,
    ),
    Suite(
        "connect",
        "Kafka Connect: two workers and a kill, S3, Debezium, PostgreSQL",
        connect("connect", 1200, store="postgres", warehouses=BOTH, only=CONNECT_WIDE),
        CONNECT,
        wide=True,
    ),
    Suite(
        "flink-quick",
        "Flink 2.1: tables, streams on both sinks",
        flink("flink-quick", "flink-2.1", FLINK_QUICK),
        ("pytest", "flink-2.1"),
    ),
    Suite(
        "flink",
        "Flink 2.1: restarts, shared tables, dynamic sink, maintenance; PostgreSQL",
        flink("flink", "flink-2.1", FLINK_WIDE, store="postgres"),
        ("pytest", "flink-2.1"),
        wide=True,
    ),
    Suite(
        "flink-s3",
        "Flink 2.1 on S3",
        flink("flink-s3", "flink-2.1", FLINK_S3, warehouses=S3),
        ("pytest", "flink-2.1"),
        wide=True,
    ),
    Suite(
        "flink-cdc",
        "Flink CDC from PostgreSQL",
        flink("flink-cdc", "flink-1.20", "test_cdc"),
        ("pytest", "flink-1.20"),
        wide=True,
    ),
    Suite("page-flink", "docs/engines/flink.md", page("flink"), ("flink-2.1",)),
    Suite(
        "trino",
        "Trino on local files and S3",
        client("trino", "trino", "trino", warehouses=BOTH),
        ("trino",),
        ("java-25",),
        wide=True,
    ),
    Suite(
        "together",
        "Flink, Spark, Trino and DuckDB on one table at once",
        client("together", "together", "pytest"),
        ("pytest", "flink-2.1", "spark-4.1", "trino", "duckdb"),
        ("java-25",),
        wide=True,
    ),
    Suite("schemathesis", "generated requests from the OpenAPI document", schemathesis, ("schemathesis",)),
    Suite("readme", "the README's snippets as they stand", snippets, ("pyiceberg", "spark-4.1")),
    Suite("page-duckdb", "docs/engines/duckdb.md", page("duckdb"), ("duckdb",)),
    Suite("page-clickhouse", "docs/engines/clickhouse.md", page("clickhouse"), ("clickhouse",)),
    Suite("page-pyiceberg", "docs/engines/pyiceberg.md", page("pyiceberg"), ("pyiceberg",)),
    Suite("page-spark", "docs/engines/spark.md", page("spark"), ("spark-4.1",), wide=True),
    Suite("page-daft", "docs/engines/daft.md", page("daft"), ("daft",), wide=True),
    Suite("page-polars", "docs/engines/polars.md", page("polars"), ("polars",), wide=True),
    Suite("page-go", "docs/engines/go.md", page("go"), ("go",), ("go",), wide=True),
    Suite("page-rust", "docs/engines/rust.md", page("rust"), ("rust",), wide=True),
    Suite("page-javascript", "docs/engines/javascript.md", page("javascript"), ("javascript",), ("node",), wide=True),
)
