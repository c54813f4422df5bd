"""Flink jobs that come back from every fault, and what their tables must look like in the end."""

import time

from lakehouse import SINKS
from rest import wait_until

ENDS_WITHIN_S = 1500
ENDED = ("FINISHED", "FAILED", "CANCELED")


def open_session(lake, sink, restore=None, **more):
    """A streaming session whose jobs are restarted as often as they fail."""
    settings = {
        "table.exec.iceberg.use-v2-sink": SINKS[sink],
        "restart-strategy.fixed-delay.attempts": "1000",
        # A checkpoint that fails with its task is the task's failure, and no more.
        "execution.checkpointing.tolerable-failed-checkpoints": "1000",
        **more,
    }
    if restore:
        settings["execution.state-recovery.path"] = restore
    lake.open("streaming", settings)


def wait_for_end(lake, job):
    end = time.monotonic() + ENDS_WITHIN_S
    while (state := lake.flink.state_of(job)) not in ENDED:
        assert time.monotonic() < end, f"{state} after {ENDS_WITHIN_S} s"
        time.sleep(0.5)
    assert state == "FINISHED"


def wait_for_commits(between, count):
    """Waits until that many more commits were answered 200."""
    there = landed(between)
    wait_until(lambda: landed(between) >= there + count, bound_s=240)


def landed(between):
    return sum(200 in commit.statuses for commit in list(between.commits))


def restore_point(lake, job, earlier=None):
    """The newest checkpoint of a job; `earlier`, what it was itself restored from, where it has made none."""
    made = list((lake.flink.state / job).glob("chk-*/_metadata"))
    return lake.flink.newest_checkpoint(job) if made else earlier


def assert_unbroken(metadata, ref="main"):
    """From the head of a branch down to what expiry left: numbers and times fall, and no position is there twice."""
    snapshots = {snapshot["snapshot-id"]: snapshot for snapshot in metadata["snapshots"]}
    chain = [snapshots[metadata["refs"][ref]["snapshot-id"]]]
    while parent := snapshots.get(chain[-1].get("parent-snapshot-id")):
        chain.append(parent)
    for child, parent in zip(chain, chain[1:], strict=False):
        assert child["sequence-number"] > parent["sequence-number"]
        assert child["timestamp-ms"] > parent["timestamp-ms"]
    positions = [position for snapshot in chain if (position := position_of(snapshot["summary"]))]
    assert len(positions) == len(set(positions))


KEYS = ("flink.job-id", "flink.operator-id", "flink.max-committed-checkpoint-id")
SPARK_KEYS = ("spark.sql.streaming.queryId", "spark.sql.streaming.epochId")


def position_of(summary):
    """Who wrote a snapshot and how far it had come, or None."""
    for keys in (KEYS, SPARK_KEYS):
        if keys[-1] in summary:
            return tuple(summary[key] for key in keys)


def outcomes(between):
    """How often the catalog gave which answer to a commit, and how many of them said that it was there already."""
    answers = [answer for commit in between.commits for answer in commit.answers]
    counts = {}
    for answer in answers:
        key = str(answer.status) if answer else "none"
        counts[key] = counts.get(key, 0) + 1
    known = sum(is_duplicate(answer) for answer in answers if answer)
    return {"commits": len(between.commits), "answers": counts, "duplicates": known}


def is_duplicate(answer):
    return any(name.lower() == "x-frazil-duplicate-of" for name, _ in answer.headers)
