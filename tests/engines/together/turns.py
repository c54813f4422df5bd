"""What the programs beside the stream share: the question that they ask, and when they ask it.

The stream writes groups: three rows with one id whose shares sum to zero. All rows of a group come out of one record,
so they belong to one checkpoint, and a reader that finds a part of a group has seen a part of a snapshot.
"""

import contextlib
import fcntl
import json
import pathlib
import time

ROWS = 3
PAUSE_S = 0.3
ENDED = "ended"


def question(table):
    """How many groups a table has, how many rows, and how many groups are not whole."""
    broken = f"CASE WHEN n = {ROWS} AND shares = {ROWS} AND total = 0 THEN 0 ELSE 1 END"
    groups = f"SELECT count(*) AS n, count(DISTINCT share) AS shares, sum(share) AS total FROM {table} GROUP BY id"
    return f"SELECT count(*), coalesce(sum(n), 0), coalesce(sum({broken}), 0) FROM ({groups}) AS groups"


def reading(folder, ask):
    """A turn that asks, beside which no file is deleted."""

    def turn():
        with beside_others(folder):
            groups, rows, broken = (int(value) for value in ask())
        return {"groups": groups, "rows": rows, "broken": broken}

    return turn


def take(folder, name, turn):
    """Takes turns until the stream has ended, and one more. NAME.jsonl in the folder gets what each of them told."""
    folder = pathlib.Path(folder)
    with open(folder / f"{name}.jsonl", "w", buffering=1) as told:
        last = False
        while not last:
            last = (folder / ENDED).exists()
            told.write(f"{json.dumps(turn())}\n")
            time.sleep(PAUSE_S)  # The others want the processors too.


def told(folder, name):
    """What the turns of a program told so far; a line that is being written is left out."""
    file = folder / f"{name}.jsonl"
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    return [json.loads(line) for line in lines]


@contextlib.contextmanager
def beside_others(folder):
    with locked(folder, "files", fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def alone(folder):
    """While nobody reads: an operator keeps snapshots for longer than a query takes, and here none is kept for long."""
    with locked(folder, "files", fcntl.LOCK_EX):
        yield


@contextlib.contextmanager
def locked(folder, name, how):
    with open(pathlib.Path(folder, "gate.lock"), "w") as gate, open(pathlib.Path(folder, f"{name}.lock"), "w") as lock:
        # Who waits holds the gate, so that those who come later queue behind.
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(lock, how)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield
