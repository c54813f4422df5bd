"""The checked-in answers of each store's database to its queries (`server/store-*/.sqlx`), made anew.

    sqlx_prepare.py            compares them with what is checked in
    sqlx_prepare.py --write    replaces what is checked in

Migrates a fresh database per store and lets the query macros ask it while `cargo check` expands them.
"""

import argparse
import contextlib
import filecmp
import os
import pathlib
import shutil
import sqlite3
import sys
import tempfile

import paths
import postgres
import process
from process import Failed

# All of it, so that the dependencies which other steps have built serve here too.
WORKSPACE = ["--workspace"]
STORES = {"store-postgres": "POSTGRES_DATABASE_URL", "store-sqlite": "SQLITE_DATABASE_URL"}


def compare(server, log):
    """Raises where a store's `.sqlx` is not what its database says today."""
    # First everything as it stands: what is up to date then does not take another store's answers for its own.
    check(WORKSPACE, log, SQLX_OFFLINE="true")
    stale = []
    for store in STORES:
        with asked(store, WORKSPACE, server, log) as fresh:
            stale += differences(checked_in(store), fresh)
    if stale:
        log.write("".join(f"{file}\n" for file in stale))
        raise Failed(f"{len(stale)} stale files in .sqlx, the first {stale[0]}; run `just prepare`")


def write(server, log):
    # Each store alone: with a new query none of the others' answers would be complete.
    for store in STORES:
        with asked(store, ["-p", store], server, log) as fresh:
            shutil.rmtree(checked_in(store), ignore_errors=True)
            shutil.copytree(fresh, checked_in(store))


def checked_in(store):
    return paths.REPO / "server" / store / ".sqlx"


@contextlib.contextmanager
def asked(store, packages, server, log):
    """A folder with one file per query of the store."""
    with tempfile.TemporaryDirectory() as home:
        fresh = pathlib.Path(home, "sqlx")
        fresh.mkdir()
        url = migrated_database(store, server, pathlib.Path(home))
        with touched(paths.REPO / "server" / store / "src" / "lib.rs"):
            check(packages, log, SQLX_OFFLINE="false", SQLX_OFFLINE_DIR=str(fresh), **{STORES[store]: url})
        yield fresh


@contextlib.contextmanager
def touched(file):
    """The file is new to cargo for the length of the block, and to no build that comes after it."""
    was = file.stat()
    file.touch()
    touched_ns = file.stat().st_mtime_ns
    try:
        yield
    finally:
        # Unless somebody has written it meanwhile.
        if file.stat().st_mtime_ns == touched_ns:
            os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))


def check(packages, log, **environment):
    argv = ["cargo", "check", "--locked", "--all-targets", *packages]
    process.run(argv, log, 900, cwd=paths.REPO, env={**os.environ, **environment})


def migrated_database(store, server, home):
    if store == "store-postgres":
        url = server.fresh_database("prepare")
        for migration in migrations("postgres"):
            server.execute(url.rsplit("/", 1)[1], migration.read_text())
        return url
    file = home / "prepare.db"
    with sqlite3.connect(file) as database:
        for migration in migrations("sqlite"):
            database.executescript(migration.read_text())
    return f"sqlite:{file}"


def migrations(engine):
    return sorted((paths.REPO / "migrations" / engine).glob("*.sql"))


def differences(old, new):
    """Names of the files that are in one folder only, or differ."""
    names = {file.name for folder in (old, new) for file in folder.glob("*.json")}
    same, changed, missing = filecmp.cmpfiles(old, new, names, shallow=False)
    return sorted(f"{old.relative_to(paths.REPO)}/{name}" for name in changed + missing)


def main():
    parser = argparse.ArgumentParser(description="Compares or replaces the stores' .sqlx folders.")
    parser.add_argument("--write", action="store_true", help="replace what is checked in")
    options = parser.parse_args()
    with postgres.running(sys.stdout) as server:
        (write if options.write else compare)(server, sys.stdout)


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"{failure}")
