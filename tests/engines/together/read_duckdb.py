"""Reads a table with DuckDB, turn after turn: read_duckdb.py FOLDER URI WAREHOUSE TABLE"""

import pathlib
import sys

import duckdb
import turns

EXTENSIONS = ("httpfs", "avro", "iceberg")


def main(folder, uri, warehouse, table):
    session = duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": "1"})
    packages = pathlib.Path(duckdb.__file__).parents[1]
    for name in EXTENSIONS:
        (file,) = packages.glob(f"duckdb_extension_{name}/extensions/*/{name}.duckdb_extension")
        session.load_extension(str(file))
    session.execute(f"ATTACH '{warehouse}' AS frazil (TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none')")
    statement = turns.question(f"frazil.{table}")
    turns.take(folder, "duckdb", turns.reading(folder, lambda: session.execute(statement).fetchone()))


main(*sys.argv[1:])
