"""Appends to a table from many threads at once: appends.py URI TABLE FOLDER FIRST THREADS APPENDS

Each append is a row with an id of its own, counted from FIRST. The threads begin when FOLDER/go is there.
"""

import pathlib
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow
from pyiceberg.catalog import load_catalog


def main(uri, name, folder, first, threads, appends):
    folder, first, threads, appends = pathlib.Path(folder), int(first), int(threads), int(appends)
    catalogs = [load_catalog("frazil", type="rest", uri=uri, warehouse="default") for _ in range(threads)]
    tables = [catalog.load_table(name) for catalog in catalogs]
    (folder / "ready-python").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)

    def write(number):
        for id in range(first + number * appends, first + (number + 1) * appends):
            tables[number].append(pyarrow.table({"id": [id], "place": ["python"]}))

    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(write, number) for number in range(threads)]:
            done.result()


main(*sys.argv[1:])
