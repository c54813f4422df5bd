"""Starts `frazil serve` for a suite on a free loopback port, with a data folder and a database of its own.

    server.py --store embedded|postgres [--name NAME] [--binary FILE] -- COMMAND...

runs COMMAND against a fresh server, with `{uri}` in its words replaced by the catalog's URI. Where they have `{token}`
too, it is replaced by a bearer token, without which the server then serves nobody. Starts and stops a PostgreSQL server
where the store asks for one.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from dataclasses import dataclass

import paths
import postgres
import process
from login import Login
from process import Failed

READY_WITHIN_S = 30
TROUBLE = re.compile(r"\bERROR\b|\bpanicked at\b")


def built():
    """The binary that every suite uses, as `cargo build` leaves it."""
    return paths.TARGET / "debug" / "frazil"


@dataclass(frozen=True)
class Store:
    """Where a server keeps its state: `embedded`, or a database on `postgres`."""

    name: str
    server: postgres.Postgres | None = None

    def database_url(self, suite, data_dir):
        if self.server:
            return self.server.fresh_database(f"frazil_{suite}")
        return f"sqlite:{data_dir / 'frazil.db'}"


@dataclass(frozen=True)
class Frazil:
    """A running server: its catalog URI, its process id, its data folder and its database."""

    uri: str
    pid: int
    data_dir: os.PathLike
    database_url: str


LAKE = "lake"


@contextlib.contextmanager
def serving(binary, suite, store, allowed_locations=(), expected=(), s3=None, settings=""):
    """A fresh server for the length of the block; with `s3`, a store, it has a warehouse `lake` on it too.

    `settings` is the text of a configuration file. The server must stop by itself when asked, and its log must hold no
    error and no panic but those that match a regular expression of `expected`.
    """
    data_dir = paths.RUNS / suite
    shutil.rmtree(data_dir, ignore_errors=True)
    data_dir.mkdir(parents=True)
    listen = f"127.0.0.1:{process.free_port()}"
    database_url = store.database_url(suite, data_dir)
    argv = [binary, "serve", "--listen", listen, "--data-dir", data_dir, "--database-url", database_url]
    if settings:
        config = data_dir / "frazil.toml"
        config.write_text(settings)
        argv += ["--config", config]
    for location in allowed_locations:
        argv += ["--allowed-location", location]
    log_file = paths.LOGS / f"{suite}.server.log"
    with started(argv, log_file, **(s3.environment() if s3 else {})) as child:
        frazil = Frazil(f"http://{listen}", child.pid, data_dir, database_url)
        wait_until_ready(frazil.uri, child, log_file)
        if s3:
            # All suites share a bucket, each with a place of its own: SeaweedFS sets volumes apart for every bucket.
            location = f"{s3.bucket('lakes')}/{suite}"
            make_lake(binary, frazil.uri, s3, location, paths.LOGS / f"{suite}.warehouse.log")
        yield frazil
    refuse_trouble(log_file, expected)


# Asks everybody who they are, and knows principals of its own.
PRINCIPALS = "[auth]\nprincipals = true\n"


def login(binary, frazil, name):
    """How a new principal of the server's own logs in, made as an operator makes one."""
    argv = [binary, "principal", "create", name, "--database-url", frazil.database_url]
    made = subprocess.run(argv, capture_output=True, text=True, env=clean_environment())
    if made.returncode != 0:
        raise Failed(f"no principal was made: {made.stderr.strip()}")
    told = json.loads(made.stdout)
    return Login(name, told["id"], told["secret"], f"{frazil.uri}/v1/oauth/tokens")


def make_lake(binary, uri, s3, location, log_file):
    """A warehouse on S3 whose secret the server reads from its environment."""
    argv = [binary, "warehouse", "create", LAKE, "--server", uri, "--location", location]
    argv += ["--endpoint", s3.endpoint, "--region", s3.region, "--path-style"]
    argv += ["--access-key-id", s3.access_key_id, "--secret-access-key", "env:S3_SECRET_ACCESS_KEY"]
    with open(log_file, "a") as log:
        process.run(argv, log, 60)


@contextlib.contextmanager
def started(argv, log_file, cwd=paths.REPO, **environment):
    """The process of a server, stopped at the end of the block; a stop by force is a failure."""
    log_file.parent.mkdir(parents=True, exist_ok=True)
    with open(log_file, "w") as log:
        child = process.start(argv, log, cwd=cwd, env=clean_environment() | environment)
        try:
            yield child
        finally:
            status = process.stop(child)
    if status != 0:
        raise Failed(f"the server ended with status {status}: see {log_file.name}")


def clean_environment():
    """This process's environment without what the server would take for settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("FRAZIL_")}


def wait_until_ready(uri, child, log_file):
    process.wait_until_ready(child, "the server", lambda: is_ready(uri), READY_WITHIN_S, log_file.name)


def is_ready(uri):
    try:
        with urllib.request.urlopen(f"{uri}/health/ready", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def refuse_trouble(log_file, expected):
    """Raises on the first error or panic in a server's log that nobody expects."""
    for line in log_file.read_text(errors="replace").splitlines():
        if TROUBLE.search(line) and not any(re.search(pattern, line) for pattern in expected):
            raise Failed(f"{log_file.name} has: {line.strip()[:300]}")


def main():
    parser = argparse.ArgumentParser(description="Runs a command against a fresh server.")
    parser.add_argument("--store", choices=("embedded", "postgres"), required=True)
    parser.add_argument("--name", default="server", help="names the data folder and the log")
    parser.add_argument("--binary", default=built(), help="the frazil to start (default: %(default)s)")
    parser.add_argument("--allowed-location", action="append", default=[], metavar="URI")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    paths.LOGS.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        database = None
        if options.store == "postgres":
            log = stack.enter_context(open(paths.LOGS / f"{options.name}.postgres.log", "w"))
            database = stack.enter_context(postgres.running(log))
        store = Store(options.store, database)
        asks = any("{token}" in word for word in options.command)
        settings = PRINCIPALS if asks else ""
        serves = serving(options.binary, options.name, store, options.allowed_location, settings=settings)
        frazil = stack.enter_context(serves)
        token = login(options.binary, frazil, "tests").token() if asks else ""
        words = [word.replace("{uri}", frazil.uri).replace("{token}", token) for word in options.command]
        process.run(words, sys.stdout, bound_s=1800)


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"{failure}")
