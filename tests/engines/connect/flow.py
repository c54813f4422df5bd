"""A sink from a fresh topic into a fresh table, both named after the test's own name."""

from dataclasses import dataclass

import worker as connect

COMMIT_EVERY_MS = 1000


@dataclass(frozen=True)
class Flow:
    """A running sink: the worker that was asked for it, its connector, its topic, and the table that it fills."""

    worker: connect.Worker
    connector: str
    topic: str
    table: str

    def states(self):
        return self.worker.states(self.connector)


def properties(name):
    """What the connector of this name has for itself."""
    return {
        "name": name,
        "topics": name,
        "iceberg.tables": table_of(name),
        "iceberg.control.topic": f"control-{name}",
        "iceberg.control.commit.interval-ms": COMMIT_EVERY_MS,
    }


def table_of(name):
    return f"{name}.readings"
