"""The tables and plots of the last run in docs/benchmarks.md."""

import shutil

import markdown
import paths
import tables

DOCUMENT = paths.REPO / "docs" / "benchmarks.md"
PLOTS = paths.REPO / "docs" / "benchmarks"
BEGIN, END = "<!-- the last run begins -->", "<!-- the last run ends -->"


def write(found, plots):
    shutil.rmtree(PLOTS, ignore_errors=True)
    PLOTS.mkdir()
    for plot in plots:
        shutil.copy(plot, PLOTS)
    markdown.put_between(DOCUMENT, BEGIN, END, f"{tables.whole(found)}\n{pictures(plots)}".rstrip())


def pictures(plots):
    vector = [plot for plot in plots if plot.suffix == ".svg"]
    return "".join(f"![{plot.stem.replace('-', ' ')}](benchmarks/{plot.name})\n\n" for plot in vector)
