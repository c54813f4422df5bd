"""Every server that the bench can start, by name, with what it does not make durable."""

from collections.abc import Callable
from dataclasses import dataclass

import frazil
import machine
import peers

FSYNCED = "everything that it acknowledges"


@dataclass(frozen=True)
class Server:
    """`start(room, name, binary)` gives a context manager of a target; `fetch(log)` brings what it needs beforehand."""

    name: str
    what: str
    start: Callable
    durable: str
    fetch: Callable = lambda log: None
    ours: bool = False
    stores: tuple[str, ...] = ("file", "s3")


RUSTBERG_DURABLE = "the database; metadata files on a local disk are not fsynced"
FIXTURE_DURABLE = "the database; metadata files on a local disk are written through Hadoop and not fsynced"

SERVERS = {
    server.name: server
    for server in (
        Server("frazil-sqlite", "Frazil on SQLite", frazil.serving("sqlite"), FSYNCED, ours=True),
        Server("frazil-postgres", "Frazil on PostgreSQL", frazil.serving("postgres"), FSYNCED, ours=True),
        Server(
            "frazil-sqlite-norebase",
            "Frazil on SQLite, rebase off",
            frazil.serving("sqlite", rebase=False),
            FSYNCED,
            ours=True,
        ),
        Server(
            "frazil-postgres-norebase",
            "Frazil on PostgreSQL, rebase off",
            frazil.serving("postgres", rebase=False),
            FSYNCED,
            ours=True,
        ),
        Server(
            "frazil-postgres-two",
            "two replicas of Frazil on one PostgreSQL",
            frazil.serving("postgres", replicas=2),
            FSYNCED,
            ours=True,
        ),
        Server(
            "rustberg-redb",
            "Rustberg on its embedded redb",
            peers.rustberg("redb"),
            RUSTBERG_DURABLE,
            peers.fetch_rustberg,
        ),
        Server(
            "rustberg-postgres",
            "Rustberg on PostgreSQL",
            peers.rustberg("postgres"),
            RUSTBERG_DURABLE,
            peers.fetch_rustberg,
        ),
        Server(
            "fixture",
            "Iceberg's REST fixture, JDBC on PostgreSQL",
            peers.fixture,
            FIXTURE_DURABLE,
            lambda log: machine.classpath("fixture", log),
        ),
        Server(
            "nessie",
            "Nessie, JDBC2 on PostgreSQL",
            peers.nessie,
            "the database and S3",
            lambda log: machine.jar("nessie", log),
            stores=("s3",),
        ),
    )
}
