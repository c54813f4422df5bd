"""The suites of clients that log in: a server that serves nobody unknown, and Keycloak beside it.

Each client runs the file `test_login.py` of its folder, as a principal of the catalog's own and as one of Keycloak's.
"""

import contextlib

import keycloak
import login
import paths
import server
from bench import Suite
from engine_suites import drive, flink_settings, spark_settings

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
SPARK = ("spark", "spark-4.1", lambda log: spark_settings(["spark-4.1"], log))
FLINK = ("flink", "pytest", lambda log: flink_settings("flink-2.1", log))
TRINO = ("trino", "trino", lambda log: {})


def logging_in(suite, *clients):
    def run(bench, log):
        with contextlib.ExitStack() as stack:
            provider_log = stack.enter_context(open(paths.LOGS / f"{suite}.keycloak.log", "w"))
            provider = stack.enter_context(keycloak.running(provider_log, LIFETIME_S))
            serves = server.serving(bench.binary, suite, bench.store("postgres"), settings=settings(provider))
            frazil = stack.enter_context(serves)
            logins = [server.login(bench.binary, frazil, "engines"), login.outside(provider)]
            told = {"FRAZIL_URI": frazil.uri, **login.environment(logins)}
            for folder, venv, settings_of in clients:
                drive(frazil, f"{folder}/test_login.py", venv, log, BOUND_S, **told, **settings_of(log))

    return run


LOGINS = (
    Suite(
        "login",
        "PyIceberg, DuckDB, Spark and Flink log in: by the catalog, and by Keycloak",
        logging_in("login", PYICEBERG, DUCKDB, SPARK, FLINK),
        ("keycloak", "pyiceberg", "duckdb", "spark-4.1", "pytest", "flink-2.1"),
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
