"""Views by SQL."""

import pytest
from pyspark.errors import AnalysisException


def test_a_view_is_created_read_described_and_dropped(sql, namespace, table):
    view = f"frazil.{namespace}.by_place"
    sql(
        f"""CREATE VIEW {view} (place COMMENT 'where', n) COMMENT 'counts'
            AS SELECT place, count(*) FROM {table} GROUP BY place"""
    )

    assert sql(f"SELECT * FROM {view} ORDER BY place") == [("delta", 1), ("sound", 2)]
    assert [row[1] for row in sql(f"SHOW VIEWS IN frazil.{namespace}")] == ["by_place"]
    assert sql(f"SHOW TABLES IN frazil.{namespace}") == [(namespace, "readings", False)]
    assert "GROUP BY" in sql(f"SHOW CREATE TABLE {view}")[0][0]

    sql(f"DROP VIEW {view}")
    with pytest.raises(AnalysisException):
        sql(f"SELECT * FROM {view}")
    sql(f"DROP VIEW IF EXISTS {view}")


def test_a_replaced_view_gives_the_new_answer(sql, namespace, table):
    view = f"frazil.{namespace}.some"
    sql(f"CREATE VIEW {view} AS SELECT id FROM {table}")
    sql(f"CREATE OR REPLACE VIEW {view} AS SELECT id FROM {table} WHERE place = 'delta'")

    assert sql(f"SELECT * FROM {view}") == [(3,)]


def test_view_properties_are_set_and_unset(sql, namespace, table):
    view = f"frazil.{namespace}.some"
    sql(f"CREATE VIEW {view} TBLPROPERTIES ('team' = 'hydrology') AS SELECT id FROM {table}")
    sql(f"ALTER VIEW {view} SET TBLPROPERTIES ('unit' = 'm3/s')")
    sql(f"ALTER VIEW {view} UNSET TBLPROPERTIES ('team')")

    properties = dict(sql(f"SHOW TBLPROPERTIES {view}"))
    assert properties["unit"] == "m3/s"
    assert "team" not in properties


def test_a_view_is_renamed(sql, namespace, table):
    sql(f"CREATE VIEW frazil.{namespace}.old AS SELECT id FROM {table}")
    sql(f"ALTER VIEW frazil.{namespace}.old RENAME TO frazil.{namespace}.new")

    assert sql(f"SELECT count(*) FROM frazil.{namespace}.new") == [(3,)]
    assert [row[1] for row in sql(f"SHOW VIEWS IN frazil.{namespace}")] == ["new"]


def test_a_name_is_a_table_or_a_view(sql, namespace, table):
    with pytest.raises(Exception, match="(?i)already exists"):
        sql(f"CREATE VIEW {table} AS SELECT 1 AS one")

    sql(f"CREATE VIEW frazil.{namespace}.taken AS SELECT 1 AS one")
    with pytest.raises(Exception, match="(?i)already exists"):
        sql(f"CREATE TABLE frazil.{namespace}.taken (id bigint) USING iceberg")
