"""Reads a table with Trino, turn after turn: read_trino.py FOLDER PORT TABLE"""

import sys

import trino.dbapi
import turns


def main(folder, port, table):
    cursor = trino.dbapi.connect(host="127.0.0.1", port=int(port), user="reader", catalog="frazil").cursor()
    statement = turns.question(table)
    turns.take(folder, "trino", turns.reading(folder, lambda: cursor.execute(statement).fetchone()))


main(*sys.argv[1:])
