"""What one start of a server may use: a folder and a log of its own, a place for tables, a database."""

import contextlib
import os
import pathlib
import shutil
from dataclasses import dataclass

import postgres
import process
import seaweed

BUCKET = "bench"


@dataclass(frozen=True)
class Backends:
    """What all servers of a run share. `s3` is there where a planned run needs it."""

    postgres: postgres.Postgres
    s3: seaweed.S3 | None


@dataclass(frozen=True)
class Room:
    """`name` is that of the run, as in `W1-file-rustberg-redb`; `store` is `file` or `s3`."""

    name: str
    store: str
    folder: pathlib.Path
    log_file: pathlib.Path
    backends: Backends

    @property
    def workload(self):
        return self.name.partition("-")[0]

    def warehouse(self):
        """Where the tables of this run lie: the URI of a folder or of a bucket's prefix."""
        if self.store == "file":
            return (self.folder / "warehouse").as_uri()
        return f"{self.backends.s3.bucket(BUCKET)}/{self.name}"

    def files(self):
        """How the load generator reaches the same place."""
        told = {"kind": self.store, "root": self.warehouse()}
        return told | s3_settings(self.backends.s3) if self.store == "s3" else told

    def database(self):
        """The URL of a fresh database."""
        return self.backends.postgres.fresh_database(self.name.lower())

    def jdbc(self):
        """A fresh database, as Java names it."""
        return f"jdbc:{self.database().replace('postgres://postgres@', 'postgresql://')}"


def s3_settings(s3):
    return {
        "endpoint": s3.endpoint,
        "region": s3.region,
        "access-key-id": s3.access_key_id,
        "secret-access-key": s3.secret_access_key,
    }


@contextlib.contextmanager
def made(name, store, data, logs, backends):
    """A fresh room for the length of the block. Its files are empty at the end, its log stays.

    The names of the files go with `data`, when nothing is measured any more: an ext4 without a journal looks at every
    file that was just deleted before it makes a new one, and whoever comes next would pay for it.
    """
    folder = data / name
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "warehouse").mkdir(parents=True)
    try:
        yield Room(name, store, folder, logs / f"{name}.server.log", backends)
    finally:
        for file in folder.rglob("*"):
            if file.is_file() and not file.is_symlink():
                # What a server takes away meanwhile is no reason to lose what was measured.
                with contextlib.suppress(OSError):
                    os.truncate(file, 0)


@contextlib.contextmanager
def child(room, argv, what, is_ready, bound_s, **options):
    """A server's process for the length of the block, from when it answers."""
    with open(room.log_file, "a") as log:
        started = process.start(argv, log, cwd=room.folder, **options)
        try:
            process.wait_until_ready(started, what, is_ready, bound_s, room.log_file)
            yield started
        finally:
            process.stop(started)
