"""The tables and plots of the last run in docs/benchmarks.md."""

import shutil
import sys

import paths
import tables

DOCUMENT = paths.REPO / "docs" / "benchmarks.md"
PLOTS = paths.REPO / "docs" / "benchmarks"
BEGIN, END = "<!-- the last run begins -->", "<!-- the last run ends -->"


def write(found, plots):
    text = DOCUMENT.read_text()
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        sys.exit(f"{DOCUMENT} lacks the marks of the last run")
    shutil.rmtree(PLOTS, ignore_errors=True)
    PLOTS.mkdir()
    for plot in plots:
        shutil.copy(plot, PLOTS)
    body = f"{tables.whole(found)}\n{pictures(plots)}"
    DOCUMENT.write_text(f"{before}{BEGIN}\n{body}{END}{after}")


def pictures(plots):
    vector = [plot for plot in plots if plot.suffix == ".svg"]
    return "".join(f"![{plot.stem.replace('-', ' ')}](benchmarks/{plot.name})\n\n" for plot in vector)
