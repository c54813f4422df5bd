"""A PostgreSQL server of the tests' own: fresh data folder, free loopback port, an ordinary user, durable."""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile

import process
from process import Failed

READY_WITHIN_S = 60


def binaries():
    """The folder that holds initdb and postgres, the newest version first, or None."""
    on_path = shutil.which("initdb")
    if on_path and shutil.which("postgres"):
        return pathlib.Path(on_path).resolve().parent
    installed = pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((file.parent for file in installed), key=lambda folder: float(folder.parent.name), default=None)


def ordinary_user():
    """Whom PostgreSQL runs as: it refuses root."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in known)


class Postgres:
    """A running server; `fresh_database` gives each user of it a database of its own."""

    def __init__(self, binaries, port):
        self.binaries = binaries
        self.port = port
        self.made = 0

    def url(self, database="postgres"):
        return f"postgres://postgres@127.0.0.1:{self.port}/{database}"

    def fresh_database(self, name):
        """The URL of a new, empty database."""
        self.made += 1
        database = f"{name}_{self.made}".replace("-", "_").replace(".", "_")
        self.execute("postgres", f'CREATE DATABASE "{database}"')
        return self.url(database)

    def execute(self, database, sql):
        """Runs SQL text as one psql script; the first error ends it."""
        self.psql(database, sql)

    def rows(self, database, query):
        """What a query finds: tuples of text."""
        return [tuple(line.split("\t")) for line in self.psql(database, query, "-At", "-F", "\t").splitlines()]

    def psql(self, database, sql, *options):
        argv = [self.binaries / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", self.url(database), *options]
        done = subprocess.run(argv, input=sql, capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed(f"psql: {done.stderr.strip()}")
        return done.stdout

    def answers(self):
        ask = [self.binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(ask).returncode == 0


@contextlib.contextmanager
def running(log, **settings):
    """A PostgreSQL server for the length of the block; `settings` are those of postgresql.conf."""
    found = binaries()
    if not found:
        raise Failed("PostgreSQL is not installed: neither in PATH nor below /usr/lib/postgresql")
    user = ordinary_user()
    with tempfile.TemporaryDirectory(prefix="frazil-postgres-", ignore_cleanup_errors=True) as home:
        if user:
            shutil.chown(home, user)
        options = {"cwd": home, "user": user, "extra_groups": [] if user else None}
        data = f"{home}/data"
        initdb = [found / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C"]
        process.run(initdb, log, 120, **options)
        server = Postgres(found, process.free_port())
        argv = [found / "postgres", "-D", data, "-p", server.port, "-h", "127.0.0.1", "-k", "", "-N", "200"]
        argv += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        child = process.start(argv, log, **options)
        try:
            process.wait_until_ready(child, "PostgreSQL", server.answers, READY_WITHIN_S, log.name)
            yield server
        finally:
            # SIGINT is PostgreSQL's fast shutdown.
            process.stop(child, signal.SIGINT)
