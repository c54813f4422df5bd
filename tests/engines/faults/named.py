"""Writers that name themselves and append, row by row, until FOLDER/stop is there: named.py URI TABLE FOLDER WRITERS

Each keeps a mark for every append in the file FOLDER/writer-N.
"""

import pathlib
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow
from pyiceberg.catalog import load_catalog

PAUSE_S = 0.2
# No two writers have an id in common.
APART = 1_000_000


def main(uri, name, folder, writers):
    folder, writers = pathlib.Path(folder), int(writers)

    def write(number):
        table = load_catalog("frazil", type="rest", uri=uri, warehouse="default").load_table(name)
        with open(folder / f"writer-{number}", "w", buffering=1) as marks:
            id = number * APART
            while not (folder / "stop").exists():
                rows = pyarrow.table({"id": [id], "place": ["flow"]})
                table.append(rows, snapshot_properties={"frazil.writer-id": f"writer-{number}"})
                marks.write("+")
                marks.flush()
                id += 1
                time.sleep(PAUSE_S)

    with ThreadPoolExecutor(writers) as pool:
        for done in [pool.submit(write, number) for number in range(writers)]:
            done.result()


main(*sys.argv[1:])
