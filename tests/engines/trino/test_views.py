"""Views by SQL."""

import pytest
from trino.exceptions import TrinoExternalError, TrinoUserError


def test_a_view_is_created_read_described_and_dropped(sql, schema, table):
    view = f"{schema}.by_place"
    sql(
        f"""CREATE VIEW {view} COMMENT 'counts' SECURITY INVOKER
            AS SELECT place, count(*) AS n FROM {table} GROUP BY place"""
    )

    assert sql(f"SELECT * FROM {view} ORDER BY place") == [("delta", 1), ("sound", 2)]
    assert sql(f"SHOW TABLES FROM {schema}") == [("by_place",), ("readings",)]
    statement = sql(f"SHOW CREATE VIEW {view}")[0][0]
    assert "COMMENT 'counts'" in statement and "GROUP BY place" in statement

    sql(f"DROP VIEW {view}")
    with pytest.raises(TrinoUserError, match="does not exist"):
        sql(f"SELECT * FROM {view}")
    sql(f"DROP VIEW IF EXISTS {view}")


def test_a_replaced_view_gives_the_new_answer(sql, schema, table):
    view = f"{schema}.some"
    sql(f"CREATE VIEW {view} AS SELECT id FROM {table}")
    with pytest.raises(TrinoUserError, match="already exists"):
        sql(f"CREATE VIEW {view} AS SELECT 1 AS one")

    sql(f"CREATE OR REPLACE VIEW {view} AS SELECT id, flow FROM {table} WHERE place = 'delta'")

    assert sql(f"SELECT * FROM {view}") == [(3, 1.5)]


def test_a_view_is_renamed_and_commented(sql, schema, table):
    sql(f"CREATE VIEW {schema}.old AS SELECT id FROM {table}")
    sql(f"ALTER VIEW {schema}.old RENAME TO {schema}.new")
    sql(f"COMMENT ON VIEW {schema}.new IS 'of the stream'")

    assert sql(f"SELECT count(*) FROM {schema}.new") == [(3,)]
    assert "of the stream" in sql(f"SHOW CREATE VIEW {schema}.new")[0][0]
    assert sql(f"SHOW TABLES FROM {schema}") == [("new",), ("readings",)]


def test_a_name_is_a_table_or_a_view(sql, schema, table):
    with pytest.raises(TrinoUserError, match="already exists"):
        sql(f"CREATE VIEW {table} AS SELECT 1 AS one")

    sql(f"CREATE VIEW {schema}.taken AS SELECT 1 AS one")
    with pytest.raises(TrinoUserError, match="already exists"):
        sql(f"CREATE TABLE {schema}.taken (id bigint)")


def test_a_view_in_the_dialect_of_another_engine_is_listed_and_named_as_such(sql, rest, schema):
    rest.call("POST", f"{rest.base}/namespaces/{schema}/views", view("foreign", "spark", "SELECT 1 AS one"))

    assert sql(f"SHOW TABLES FROM {schema}") == [("foreign",)]
    with pytest.raises(TrinoExternalError, match="unsupported dialect .spark."):
        sql(f"SELECT * FROM {schema}.foreign")


def view(name, dialect, sql):
    """The body that makes a view with one column `one`."""
    version = {
        "version-id": 1,
        "timestamp-ms": 0,
        "schema-id": 0,
        "summary": {},
        "default-namespace": [],
        "representations": [{"type": "sql", "sql": sql, "dialect": dialect}],
    }
    schema = {"type": "struct", "fields": [{"id": 1, "name": "one", "type": "int", "required": False}]}
    return {"name": name, "schema": schema, "view-version": version, "properties": {}}
