"""Draws the results of a bench: `plots.py RESULTS.json FOLDER` writes a plot for each workload and store, as SVG and
PNG. Runs in the Python environment `bench` of versions.toml."""

import json
import pathlib
import sys
from collections.abc import Callable
from dataclasses import dataclass

import matplotlib
from matplotlib import pyplot
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, PercentFormatter

# The palette of Okabe and Ito, which colour-blind readers can tell apart; markers and lines say the same again.
STYLES = {
    "frazil-sqlite": ("#0072B2", "o", "-"),
    "frazil-postgres": ("#000000", "s", "-"),
    "frazil-sqlite-norebase": ("#0072B2", "o", ":"),
    "frazil-postgres-norebase": ("#000000", "s", ":"),
    "frazil-postgres-two": ("#56B4E9", "P", "-"),
    "rustberg-redb": ("#D55E00", "^", "-"),
    "rustberg-postgres": ("#E69F00", "v", "-"),
    "fixture": ("#009E73", "D", "-"),
    "nessie": ("#CC79A7", "X", "-"),
}
OTHERS = (("#999999", "*", "-"), ("#555555", "h", "-."), ("#F0E442", "p", "-"))
STORES = {"file": "local files", "s3": "S3 on SeaweedFS"}
FLOOR = "floor_p50_ms"


@dataclass(frozen=True)
class Panel:
    """One figure over the points of a workload; `rows` chooses those that are drawn."""

    column: str
    label: str
    log: bool = False
    percent: bool = False
    floor: bool = False
    rows: Callable[[dict], bool] = lambda row: True


@dataclass(frozen=True)
class Plot:
    title: str
    point: str
    point_label: str
    panels: tuple[Panel, ...]


def loads(load, title):
    def alone(row):
        return row.get("load") == load and row.get("readers") == 1

    return Panel("p50_ms", f"p50 of {title} (ms)", log=True, rows=alone)


WRITERS = ("writers", "writers")
PLOTS = {
    "W1": Plot(
        "one writer appends to one table",
        "snapshots",
        "retained snapshots",
        (Panel("p50_ms", "p50 of a commit (ms)", log=True, floor=True),),
    ),
    "W2": Plot(
        "writers append to one table, no retries",
        *WRITERS,
        (
            Panel("commits_per_s", "commits per second", log=True),
            Panel("success_rate", "attempts that succeed", percent=True),
        ),
    ),
    "W3": Plot(
        "writers append to one table, Iceberg's retries",
        *WRITERS,
        (
            Panel("commits_per_s", "commits per second", log=True),
            Panel("attempts_per_commit", "attempts for each commit", log=True),
        ),
    ),
    "W4": Plot(
        "writers append to a table each",
        *WRITERS,
        (Panel("commits_per_s", "commits per second", log=True), Panel("p99_ms", "p99 of a commit (ms)", log=True)),
    ),
    "W5": Plot(
        "a reader loads one table",
        "snapshots",
        "retained snapshots",
        (
            loads("full", "a full load"),
            loads("refs", "a load of refs"),
            loads("304", "a 304"),
        ),
    ),
    "W6": Plot(
        "a compaction loop races appends",
        "appends_per_s",
        "appends per second",
        (
            Panel("compactions_finished", "compactions finished"),
            Panel("appends_late", "appends late"),
            Panel("appends_retried", "appends retried"),
        ),
    ),
}


def main(results_file, folder):
    matplotlib.use("Agg")
    pyplot.rcParams.update({"axes.spines.top": False, "axes.spines.right": False, "svg.fonttype": "none"})
    outcomes = json.loads(pathlib.Path(results_file).read_text())["outcomes"]
    for workload, plot in PLOTS.items():
        for store, title in STORES.items():
            found = [told for told in outcomes if told["workload"] == workload and told["store"] == store]
            rows = {told["server"]: told["told"].get("rows", []) for told in found}
            if any(points(plot, panel, rows[server]) for server in rows for panel in plot.panels):
                file = pathlib.Path(folder) / f"{workload.lower()}-{store}"
                draw(plot, f"{workload}, {title}: {plot.title}", rows, file)


def draw(plot, title, rows, file):
    columns = len(plot.panels)
    figure, axes = pyplot.subplots(1, columns, figsize=(1.5 + 4.2 * columns, 4.2), squeeze=False, layout="constrained")
    for panel, axis in zip(plot.panels, axes[0], strict=True):
        found = {server: points(plot, panel, its_rows) for server, its_rows in rows.items()}
        places = sorted({place for its_points in found.values() for place, _ in its_points})
        if len(places) > 1:
            lines(plot, panel, rows, axis)
            scale(axis, panel, places)
        else:
            bars(panel, found, axis)
            axis.set_xlabel(" ".join([plot.point_label, "=", *(f"{place:,g}" for place in places)]))
        axis.set_ylabel(panel.label)
        axis.grid(axis="y", color="#dddddd", linewidth=0.6)
        axis.set_axisbelow(True)
    handles = {label: line for axis in axes[0] for line, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    if handles:
        figure.legend(handles.values(), handles, loc="outside right center", frameon=False)
    figure.suptitle(title, x=0.01, ha="left", fontsize=12)
    for ending in ("svg", "png"):
        figure.savefig(file.with_suffix(f".{ending}"), dpi=150, metadata=undated(ending))
    pyplot.close(figure)


def undated(ending):
    """The same results make the same file."""
    return {"Date": None} if ending == "svg" else {}


def bars(panel, found, axis):
    """What a workload of a single point comes to: a bar for each server."""
    measured = {server: its_points[0][1] for server, its_points in found.items() if its_points}
    colours = [STYLES.get(server, OTHERS[0])[0] for server in measured]
    drawn = axis.bar(range(len(measured)), measured.values(), width=0.6, color=colours)
    axis.bar_label(drawn, fmt="{:,.3g}", padding=2)
    axis.set_xticks(range(len(measured)), measured, rotation=30, ha="right")
    if panel.percent:
        axis.yaxis.set_major_formatter(PercentFormatter(1))


def lines(plot, panel, rows, axis):
    others = iter(OTHERS * len(rows))
    for server, its_rows in rows.items():
        colour, marker, line = STYLES.get(server) or next(others)
        found = points(plot, panel, its_rows)
        if found:
            face = colour if line == "-" else "white"
            style = {"color": colour, "marker": marker, "markerfacecolor": face, "linestyle": line}
            axis.plot(*zip(*found, strict=True), label=server, **style)
    if panel.floor:
        draw_floor(plot, rows, axis)
    axis.set_xlabel(plot.point_label)


def scale(axis, panel, places):
    """Points of a workload grow by factors, so their axis is logarithmic, with a tick at each point."""
    plain = FuncFormatter(lambda value, _: f"{value:,g}")
    axis.set_xscale("log")
    axis.set_xticks(places)
    axis.xaxis.set_major_formatter(plain)
    axis.xaxis.minorticks_off()
    if panel.log:
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter(plain)
        axis.yaxis.set_minor_formatter(NullFormatter())
    if panel.percent:
        axis.set_ylim(0, 1.05)
        axis.yaxis.set_major_formatter(PercentFormatter(1))


def draw_floor(plot, rows, axis):
    """The lowest floor that was measured at each point: one PUT and one guarded UPDATE."""
    measured = {}
    for row in (row for its_rows in rows.values() for row in its_rows if row.get(FLOOR) is not None):
        place = row[plot.point]
        measured[place] = min(row[FLOOR], measured.get(place, row[FLOOR]))
    if measured:
        axis.plot(*zip(*sorted(measured.items()), strict=True), color="#777777", linestyle="--", label="floor")


def points(plot, panel, rows):
    """Pairs of a point and its figure, in order; a logarithmic axis has no place for zero."""
    chosen = [row for row in rows if row.get(plot.point) and row.get(panel.column) is not None and panel.rows(row)]
    found = sorted((row[plot.point], row[panel.column]) for row in chosen)
    return [(place, value) for place, value in found if value > 0 or not panel.log]


if __name__ == "__main__":
    main(*sys.argv[1:])
