"""Writers that are two, or that come back from the dead: whoever has one name and one position is one writer."""

import shutil
import threading

import pytest
import spark as sparks
import streams
from rest import wait_until

FIXED_JOB_ID = "$internal.pipeline.job-id"
# A query that has nothing to wait for catches up with its twin, and then they race.
AT_ONCE = "0 seconds"
BOUND_S = 300


@pytest.fixture
def numbers(spark, namespace):
    """An empty table, named as Flink and Spark name it."""
    table = f"frazil.{namespace}.numbers"
    spark.sql(f"CREATE TABLE {table} (id bigint, v int) USING iceberg")
    return table


def test_every_run_of_a_job_that_ends_at_max_under_one_id_is_kept(lake, spark, numbers, size, name):
    """An application in a container has one job id for ever, and the classic sink names the end of every run alike."""
    id = name[1:].ljust(32, "0")
    for run in range(size.runs):
        lake.open("batch", {FIXED_JOB_ID: id, "table.exec.iceberg.use-v2-sink": "false"})
        lake.run(f"INSERT INTO {numbers} SELECT id, 0 FROM (VALUES (CAST({run} AS BIGINT))) AS t (id)")
        lake.crash()

    assert spark.ids(numbers) == (size.runs, size.runs, 0, size.runs - 1)
    snapshots = lake.snapshots(numbers)
    assert {snapshot["summary"]["flink.job-id"] for snapshot in snapshots} == {id}
    assert set(lake.checkpoints(numbers)) == {2**63 - 1}


def test_a_run_without_state_that_counts_from_one_again_loses_nothing(lake, spark, numbers, size, name):
    id = name[1:].ljust(32, "0")
    for run in range(2):
        streams.open_session(lake, "classic", **{FIXED_JOB_ID: id})
        lake.numbers(size.rows, per_second=size.per_second)
        job = lake.start(f"INSERT INTO {numbers} SELECT id + {run * size.rows}, v FROM numbers")
        streams.wait_for_end(lake, job)
        lake.crash()

    assert spark.ids(numbers) == (2 * size.rows, 2 * size.rows, 1, 2 * size.rows)
    assert spark.files_twice(numbers) == []
    checkpoints = lake.checkpoints(numbers)
    assert checkpoints != sorted(set(checkpoints))


@pytest.mark.parametrize("sink", ("classic", "v2"))
def test_a_killed_jobs_commit_that_arrives_after_its_successors_first_adds_nothing(
    lake, spark, between, numbers, size, tell, sink
):
    restored, arrived = threading.Event(), threading.Event()

    def held(send):
        """Nobody waits for the answer any more."""
        restored.wait(BOUND_S)
        answer = send()
        arrived.set()
        return [answer, None]

    job = begin(lake, numbers, size, sink)
    streams.wait_for_commits(between, 3)
    between.to_next_commit(held)
    wait_until(lambda: not between.faults, BOUND_S)
    lake.crash()
    successor = begin(lake, numbers, size, sink, lake.flink.newest_checkpoint(job))
    streams.wait_for_commits(between, 1)
    restored.set()
    assert arrived.wait(BOUND_S)
    streams.wait_for_end(lake, successor)

    tell(late=next(commit.statuses for commit in between.commits if None in commit.statuses), sink=sink)
    assert spark.ids(numbers) == (size.rows, size.rows, 1, size.rows)
    assert spark.files_twice(numbers) == []


@pytest.mark.parametrize("sink", ("classic", "v2"))
def test_a_commit_whose_mark_is_expired_when_its_job_comes_back_adds_nothing(lake, spark, between, numbers, size, sink):
    """The job dies before it hears that its commit landed; then the snapshot that tells of it goes."""
    died = threading.Event()

    def landed_and_killed(send):
        answer = send()
        lake.flink.kill()
        died.set()
        return [answer, None]

    job = begin(lake, numbers, size, sink)
    streams.wait_for_commits(between, 3)
    between.to_next_commit(landed_and_killed)
    assert died.wait(BOUND_S)
    for call in (sparks.COMPACT, sparks.EXPIRE.replace(f"=> {sparks.RETAINED})", "=> 1)")):
        spark.sql(call.format(table=numbers.removeprefix("frazil.")))
    assert lake.checkpoints(numbers) == []
    between.commits.clear()
    lake.flink.begin()
    successor = begin(lake, numbers, size, sink, lake.flink.newest_checkpoint(job))
    streams.wait_for_end(lake, successor)

    first = between.commits[0].answers[0]
    assert first.status == 200 and streams.is_duplicate(first)
    assert spark.ids(numbers) == (size.rows, size.rows, 1, size.rows)
    assert spark.files_twice(numbers) == []


def begin(lake, table, size, sink, restore=None):
    streams.open_session(lake, sink, restore)
    lake.numbers(size.rows, per_second=size.per_second)
    return lake.start(f"INSERT INTO {table} SELECT id, v FROM numbers")


def test_two_spark_streams_with_one_checkpoint_write_each_batch_once(
    lake, spark, between, uri, numbers, size, tell, tmp_path, tmp_path_factory, log
):
    """A copy of a checkpoint folder is the same query: both run at once, each with files of its own."""
    table = numbers.replace("frazil.", "stormy.")
    mine, copied = tmp_path / "checkpoint", tmp_path / "copy"
    spark.stream(table, mine, size.batch, AT_ONCE)
    streams.wait_for_commits(between, 3)
    spark.ask("stop")
    shutil.copytree(mine, copied)
    with sparks.running(tmp_path_factory.mktemp("twin"), log, stormy=between.uri) as twin:
        for one, checkpoint in ((spark, mine), (twin, copied)):
            one.stream(table, checkpoint, size.batch, AT_ONCE)
        streams.wait_for_commits(between, size.batches)
        wait_until(lambda: len(apps(lake, numbers)) == 2, BOUND_S)
        for one in (spark, twin):
            assert one.ask("streams")
            one.ask("stop")

    tell(**streams.outcomes(between))
    count, distinct, first, last = spark.ids(numbers)
    assert count == distinct == last - first + 1
    assert spark.files_twice(numbers) == []


def apps(lake, table):
    """The Spark processes that wrote to a table."""
    return {snapshot["summary"]["spark.app.id"] for snapshot in lake.snapshots(table)}
