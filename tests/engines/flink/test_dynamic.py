"""The dynamic sink, which picks a table and a branch for each row and makes what is not there."""

from lakehouse import options

ROWS = 3000


def test_one_stream_fills_two_branches_of_two_tables(lake, namespace, name, record):
    lake.streaming()
    lake.numbers(ROWS)
    sink = {"connector": "iceberg", "catalog-name": "frazil", "use-dynamic-iceberg-sink": "true"}
    sink |= {"dynamic-record-generator-impl": "frazil.flink.RouteByRemainder", **lake.catalog()}
    del sink["type"]
    lake.run(f"CREATE TEMPORARY TABLE routed (target STRING, id BIGINT, v INT) WITH ({options(sink)})")
    lake.flink.fail_at(ROWS // 2)
    lake.run(f"INSERT INTO routed SELECT '{name}', fails_once(id), v FROM numbers")

    tables = [f"{namespace}.{table}" for table in ("even", "odd")]
    relations = [f"{table}{branch}" for table in tables for branch in ("", " /*+ OPTIONS('branch' = 'third') */")]
    routed = " UNION ALL ".join(f"SELECT id FROM {relation}" for relation in relations)
    assert lake.ids(f"({routed})") == (ROWS, ROWS, 1, ROWS)
    for table in tables:
        assert lake.ids(table)[0] == ROWS // 3
        assert lake.ids(f"{table} /*+ OPTIONS('branch' = 'third') */")[0] == ROWS // 6
        assert lake.files_added_twice(table) == []
        assert set(lake.metadata(table)["refs"]) == {"main", "third"}
    record("dynamic", tables[0])
