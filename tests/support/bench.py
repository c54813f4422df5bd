"""What a suite is, and what all of them share."""

import os
from collections.abc import Callable
from dataclasses import dataclass

import postgres
import seaweed
from server import Store


@dataclass(frozen=True)
class Bench:
    """What the suites share: the built binary, and the run's own PostgreSQL server and S3 store."""

    binary: os.PathLike
    postgres: postgres.Postgres
    s3: seaweed.S3

    def store(self, name):
        return Store(name, self.postgres if name == "postgres" else None)


@dataclass(frozen=True)
class Suite:
    """A named check. `run` raises `Failed`.

    `needs` are names of versions.toml, fetched ahead while cargo builds; `tools` are names of `machine.TOOLS`, looked
    for before anything is begun. Wide suites run with `--all` only, and those of faults with `--faults` alone.
    """

    name: str
    what: str
    run: Callable[[Bench, object], None]
    needs: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    wide: bool = False
    faults: bool = False
