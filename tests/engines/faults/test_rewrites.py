"""A MERGE and a compaction over position deletes, which must validate again, beside writers that need not.

The writers are rebased and never wait for anybody, so a rewrite gets through only if its turn is kept for it.
"""

import contextlib
import pathlib
import time

import machine
import process
import pytest
from rest import wait_until

HERE = pathlib.Path(__file__).parent
KEPT = "place = 'kept'"


@pytest.fixture
def table(spark, namespace, size):
    """A table whose partition `kept` has a row of every ten deleted, by a position delete."""
    table = f"frazil.{namespace}.readings"
    spark.sql(
        f"""CREATE TABLE {table} (id bigint, place string) USING iceberg PARTITIONED BY (place)
            TBLPROPERTIES ('frazil.commit.rebase' = 'append', 'commit.retry.num-retries' = '10', 'write.delete.mode' = 'merge-on-read',
            'write.merge.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read')"""
    )
    spark.sql(f"INSERT INTO {table} SELECT id, 'kept' FROM range({size.rows})")
    spark.sql(f"DELETE FROM {table} WHERE {KEPT} AND id % 10 = 0")
    return table


@contextlib.contextmanager
def writing(folder, log, uri, table, writers):
    """Writers that name themselves and append to another partition for the length of the block.

    Gives how many rows they have appended; in the end each of them must have done well.
    """
    argv = [machine.venv("pyiceberg", log) / "python", HERE / "named.py", uri, table, folder, writers]
    child = process.start(argv, log, cwd=folder)
    try:
        wait_until(lambda: all((folder / f"writer-{number}").exists() for number in range(writers)), bound_s=120)
        yield lambda: sum(len((folder / f"writer-{number}").read_text()) for number in range(writers))
        (folder / "stop").touch()
        assert child.wait(120) == 0, f"a writer failed: see {log.name}"
    finally:
        process.end_group(child)


def test_each_rewrite_gets_through(spark, between, uri, table, namespace, size, tell, tmp_path, log):
    stormy = table.replace("frazil.", "stormy.", 1)
    with writing(tmp_path, log, uri, f"{namespace}.readings", size.writers) as appended:
        for round in range(size.rounds):
            with told(tell, between, appended, f"MERGE {round}"):
                merge(spark, stormy, size.rows)
            with told(tell, between, appended, f"compaction {round}"):
                compact(spark, namespace)
    assert spark.sql(f"SELECT count(*), count(DISTINCT id) FROM {table} WHERE place <> 'kept'") == [(appended(),) * 2]
    assert spark.sql(f"SELECT count(*), count(DISTINCT id) FROM {table} WHERE {KEPT}") == [(size.rows,) * 2]
    assert spark.files_twice(table) == []


def merge(spark, table, rows):
    """Writes every tenth row, those anew that are there already."""
    spark.sql(
        f"""MERGE INTO {table} t USING (SELECT 10 * id AS id FROM range({rows // 10})) s ON t.{KEPT} AND t.id = s.id
            WHEN MATCHED THEN UPDATE SET id = s.id
            WHEN NOT MATCHED THEN INSERT (id, place) VALUES (s.id, 'kept')"""
    )


def compact(spark, namespace):
    (counts,) = spark.sql(
        f"""CALL stormy.system.rewrite_data_files(table => '{namespace}.readings', where => "{KEPT}",
            options => map('rewrite-all', 'true'))"""
    )
    assert counts[0] > 0


@contextlib.contextmanager
def told(tell, between, appended, what):
    """Tells the attempts of a statement, the seconds from the first to the last, and the appends meanwhile."""
    between.commits.clear()
    before, began_s = appended(), time.monotonic()
    yield
    commits = list(between.commits)
    assert commits[-1].statuses == [200]
    tell(
        what=what,
        attempts=len(commits),
        committing_s=round(commits[-1].ended_s - commits[0].began_s, 2),
        statement_s=round(time.monotonic() - began_s, 2),
        appends=appended() - before,
    )
