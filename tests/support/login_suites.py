"""The suites of clients that log in: a server that serves nobody unknown, and Keycloak beside it.

Each client runs the file `test_login.py` of its folder, as a principal of the catalog's own and as one of Keycloak's; for
a library it is the program of its page.
"""

import contextlib

import keycloak
import login
import pages
import paths
import readme
import server
from bench import Suite
from engine_suites import CONNECT as CONNECT_NEEDS
from engine_suites import connect_settings, drive, flink_settings, spark_settings

# Short, so that sessions outlive their tokens; and a while for which a token that ran out is still taken, so that a
# client which is late to ask for the next one is not refused.
LIFETIME_S, SKEW_S = 5, 10
BOUND_S = 600


def settings(provider):
    """What the server is told: its own principals, and those of the provider by the claims of its tokens."""
    return f"""\
[auth]
principals = true
token_lifetime_ms = {LIFETIME_S * 1000}
clock_skew_ms = {SKEW_S * 1000}

[[auth.issuers]]
issuer = "{provider.issuer}"
audiences = ["{keycloak.AUDIENCE}"]
algorithms = ["RS256"]
principal_claim = "preferred_username"
groups_claim = "groups"
"""


# The folder below `tests/engines`, the Python environment, and what else the client is told.
PYICEBERG = ("pyiceberg", "pyiceberg", lambda log: {})
DUCKDB = ("duckdb", "duckdb", lambda log: {})
CONNECT = ("connect", "connect", connect_settings)
DAFT = ("daft", "daft", lambda log: {"DO_NOT_TRACK": "1"})
POLARS = ("polars", "polars", lambda log: {"POLARS_ICEBERG_PLANNER": "pyiceberg"})
CLICKHOUSE = ("clickhouse", "clickhouse", lambda log: {})
SPARK = ("spark", "spark-4.1", lambda log: spark_settings(["spark-4.1"], log))
FLINK = ("flink", "pytest", lambda log: flink_settings("flink-2.1", log))
TRINO = ("trino", "trino", lambda log: {})


# Where the program of a library's page opens the catalog, which its block on logging in does with a login; and the
# namespace that the program makes.
PROGRAMS = {
    "go": ('rest.NewCatalog(ctx, "frazil", "http://127.0.0.1:8181", rest.WithWarehouseLocation("default"))', "rivers"),
    "javascript": ('{ baseUrl: "http://127.0.0.1:8181", catalogName: "default" }', "springs"),
    "rust": ('("warehouse".to_owned(), "default".to_owned()),', "rivers"),
}


@contextlib.contextmanager
def asking(bench, suite):
    """A server that serves nobody unknown, and the logins that it knows."""
    with contextlib.ExitStack() as stack:
        provider_log = stack.enter_context(open(paths.LOGS / f"{suite}.keycloak.log", "w"))
        provider = stack.enter_context(keycloak.running(provider_log, LIFETIME_S))
        serves = server.serving(bench.binary, suite, bench.store("postgres"), settings=settings(provider))
        frazil = stack.enter_context(serves)
        yield frazil, [server.login(bench.binary, frazil, "engines"), login.outside(provider)]


def logging_in(suite, *clients):
    def run(bench, log):
        with asking(bench, suite) as (frazil, logins):
            told = {"FRAZIL_URI": frazil.uri, **login.environment(logins)}
            for folder, venv, settings_of in clients:
                drive(frazil, f"{folder}/test_login.py", venv, log, BOUND_S, **told, **settings_of(log))

    return run


def libraries_logging_in(suite):
    """Each library's program as its page has it, with each login."""

    def run(bench, log):
        with asking(bench, suite) as (frazil, logins):
            for library in PROGRAMS:
                for known in logins:
                    folder = paths.RUNS / suite / f"{library}-{known}"
                    folder.mkdir(parents=True, exist_ok=True)
                    readme.ENGINES[library](program(library, frazil.uri, known), folder, log)

    return run


def program(library, uri, known):
    """The page's program as one that logs in, in a namespace of the login's own."""
    opens, namespace = PROGRAMS[library]
    [code] = [block["code"] for block in readme.BLOCK.finditer(pages.page(library).read_text())]
    assert opens in code, f"docs/engines/{library}.md opens the catalog otherwise"
    code = code.replace(opens, pages.logging_in(library, uri, known).rstrip()).replace(readme.URI, uri)
    if "url.Parse" in code:
        code = code.replace("import (", 'import (\n\t"net/url"')
    if "process.env.FRAZIL_TOKEN" in code:
        code = code.replace("process.env.FRAZIL_TOKEN", f'"{known.token()}"')
    return code.replace(namespace, f"{namespace}_{known}")


LOGINS = (
    Suite(
        "login",
        "PyIceberg, DuckDB, ClickHouse, Spark and Flink log in: by the catalog, and by Keycloak",
        logging_in("login", PYICEBERG, DUCKDB, CLICKHOUSE, SPARK, FLINK),
        ("keycloak", "pyiceberg", "duckdb", "clickhouse", "spark-4.1", "pytest", "flink-2.1"),
    ),
    Suite(
        "login-connect",
        "Kafka Connect's sink logs in: by the catalog, and by Keycloak",
        logging_in("login-connect", CONNECT),
        ("keycloak", *CONNECT_NEEDS),
        wide=True,
    ),
    Suite(
        "login-frames",
        "Daft and Polars log in: by the catalog, and by Keycloak",
        logging_in("login-frames", DAFT, POLARS),
        ("keycloak", "daft", "polars"),
        wide=True,
    ),
    Suite(
        "login-libraries",
        "iceberg-go, iceberg-js and iceberg-rust log in: by the catalog, and by Keycloak",
        libraries_logging_in("login-libraries"),
        ("keycloak", "go", "rust", "javascript"),
        ("go", "node"),
        wide=True,
    ),
    Suite(
        "login-trino",
        "Trino logs in: by the catalog, and by Keycloak",
        logging_in("login-trino", TRINO),
        ("keycloak", "trino"),
        ("java-25",),
        wide=True,
    ),
)
