"""Streaming jobs that fail once on their way: no row is lost and none is doubled."""

import pytest

ROWS, KEYS = 3000, 100


def test_a_stream_appends_each_row_once(lake, numbers, sink, record):
    lake.streaming(sink)
    lake.numbers(ROWS)
    lake.flink.fail_at(ROWS // 2)
    lake.run(f"INSERT INTO {numbers} SELECT fails_once(id), v FROM numbers")

    assert lake.ids(numbers) == (ROWS, ROWS, 1, ROWS)
    assert lake.files_added_twice(numbers) == []
    assert set(lake.operations(numbers)) == {"append"}
    assert lake.checkpoints(numbers) == sorted(set(lake.checkpoints(numbers)))
    record(f"{sink}-append", numbers)


@pytest.mark.parametrize("version", (2, 3))
def test_an_upsert_stream_keeps_one_row_a_key(lake, namespace, sink, version, record):
    table = f"{namespace}.keyed"
    lake.run(
        f"""CREATE TABLE {table} (id BIGINT, v INT, PRIMARY KEY (id) NOT ENFORCED)
            WITH ('format-version' = '{version}', 'write.upsert.enabled' = 'true')"""
    )
    lake.streaming(sink)
    lake.numbers(ROWS)
    lake.flink.fail_at(ROWS // 2)
    lake.run(f"INSERT INTO {table} SELECT MOD(fails_once(id), {KEYS}), v FROM numbers")

    assert lake.ids(table) == (KEYS, KEYS, 0, KEYS - 1)
    assert lake.files_added_twice(table) == []
    deletes = "added-dvs" if version == 3 else "added-position-deletes"
    assert any(deletes in snapshot["summary"] for snapshot in lake.snapshots(table))
    record(f"{sink}-upsert" if version == 2 else "upsert-format-3", table)
