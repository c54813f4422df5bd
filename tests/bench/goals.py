"""The goals of the bench, judged by what one run measured. All are ratios within it, or counts."""

from collections.abc import Callable
from dataclasses import dataclass

from plan import FRAZIL

MET, NOT_MET, NOT_MEASURED = "met", "**not met**", "not measured"
# What "the same" and "independent of" allow for noise.
SAME = 1.5
MANY = 64
RUSTBERG = "rustberg"
# They keep the newest snapshot alone, so that a long history costs them nothing.
FORGETFUL = ("nessie",)


@dataclass(frozen=True)
class Goal:
    workload: str
    what: str
    wanted: str
    measured: str
    verdict: str


@dataclass(frozen=True)
class Figures:
    """The rows that one workload left on one store, by server."""

    workload: str
    store: str
    rows: dict[str, list[dict]]

    def at(self, server, **point):
        """The row of a server at a point, as in `writers=32`, or an empty one."""
        rows = self.rows.get(server, ())
        return next((row for row in rows if all(row.get(key) == value for key, value in point.items())), {})

    def points(self, server, key):
        return [row[key] for row in self.rows.get(server, ()) if key in row]

    def peers(self, without=()):
        return [name for name in self.rows if not name.startswith("frazil-") and not name.startswith(tuple(without))]

    def rustbergs(self):
        return [name for name in self.rows if name.startswith(RUSTBERG)]

    def goal(self, what, wanted, measured, verdict):
        return Goal(self.workload, f"{what} ({self.store})", wanted, measured, verdict)

    def bound(self, what, value, at_most=None, at_least=None, unit="", note=""):
        """A goal that a figure must not be above, or below; `None` is one that was not measured."""
        wanted = f"at most {at_most:g}{unit}" if at_least is None else f"at least {at_least:g}{unit}"
        if value is None:
            return self.goal(what, wanted, "", NOT_MEASURED)
        met = value <= at_most if at_least is None else value >= at_least
        return self.goal(what, wanted, f"{digits(value)}{unit}{note}", MET if met else NOT_MET)


@dataclass(frozen=True)
class Ratio:
    """A figure of ours by that of a peer, and where it was found."""

    value: float
    peer: str
    point: object = None

    def note(self):
        return f" ({self.peer}{'' if self.point is None else f', at {self.point:,}'})"


def judged(found):
    """Every goal for every store that was measured, in the order of the workloads."""
    for workload, judge in JUDGES.items():
        for store in dict.fromkeys(outcome.store for outcome in found.of(workload)):
            rows = {outcome.server: outcome.rows for outcome in found.of(workload, store) if outcome.rows}
            yield from judge(Figures(workload, store, rows))
    yield from memory(found)


def one_writer(figures):
    for ours in measured_frazils(figures):
        peers = figures.peers(without=FORGETFUL)
        ratios = ratios_of(figures, ours, figures.peers(), "p50_ms", "snapshots", at=lambda size: size < 10_000)
        ratios += ratios_of(figures, ours, peers, "p50_ms", "snapshots", at=lambda size: size >= 10_000)
        yield compared(figures, f"{ours}: p50 by that of every peer, every size", max, ratios, at_most=1)
        for size in (100, 10_000):
            row = figures.at(ours, snapshots=size)
            floor = divided(row.get("p50_ms"), row.get("floor_p50_ms"))
            yield figures.bound(f"{ours}: p50 by the floor at {size:,} snapshots", floor, at_most=1.5, unit=" ×")
        if figures.store == "file":
            ratios = ratios_of(figures, ours, peers, "p50_ms", "snapshots", at=lambda size: size == 10_000)
            yield compared(figures, f"{ours}: p50 by the best peer's at 10,000 snapshots", max, ratios, at_most=0.2)
        cpu = figures.at(ours, snapshots=10_000).get("server_cpu_ms_per_commit")
        yield figures.bound(f"{ours}: CPU of a commit at 10,000 snapshots", cpu, at_most=15, unit=" ms")
        trips = max(figures.points(ours, "sql_round_trips_per_commit"), default=None)
        yield figures.bound(f"{ours}: SQL round trips of an append", trips, at_most=3)
        puts = max(figures.points(ours, "object_puts_per_commit"), default=None)
        yield figures.bound(f"{ours}: PUTs of an append", puts, at_most=1)


def racing_writers(figures):
    for ours in measured_frazils(figures):
        row = figures.at(ours, writers=32)
        success = row.get("success_rate")
        percent = None if success is None else 100 * success
        yield figures.bound(f"{ours}: first attempts that succeed at N = 32", percent, at_least=100, unit=" %")
        yield from outrun(figures, ours, 2, 10, lambda writers: writers == 32, "at N = 32")
        share = row.get("fairness")
        yield figures.bound(f"{ours}: slowest writer by fastest at N = 32", share, at_least=0.8)
        latency = divided(row.get("p99_ms"), figures.at(ours, writers=1).get("p50_ms"))
        yield figures.bound(f"{ours}: p99 at N = 32 by the p50 of one writer", latency, at_most=10, unit=" ×")
        off = f"{ours}-norebase"
        if off in figures.rows:
            ratios = ratios_of(figures, off, figures.peers(), "commits_per_s", "writers")
            yield compared(figures, f"{off}: commits/s by every peer's, any N", min, ratios, at_least=1)


def retrying_writers(figures):
    for ours in measured_frazils(figures):
        attempts = max(figures.points(ours, "attempts_per_commit"), default=None)
        yield figures.bound(f"{ours}: attempts for each commit", attempts, at_most=1)
        exhausted = max(figures.points(ours, "exhausted_retries"), default=None)
        yield figures.bound(f"{ours}: exhausted retries", exhausted, at_most=0)
        yield from outrun(figures, ours, 2, 10, lambda writers: writers >= 8, "from N = 8")


def many_tables(figures):
    for ours in measured_frazils(figures):
        yield from outrun(figures, ours, 1.2, 3, lambda writers: writers == 8, "at N = 8")
        slowed = [
            divided(row["quiet_beside_p50_ms"], row.get("quiet_alone_p50_ms"))
            for row in figures.rows[ours]
            if row.get("quiet_beside_p50_ms") is not None
        ]
        slower = max(filter(None, slowed), default=None)
        yield figures.bound(f"{ours}: quiet table beside a hot one, by itself alone", slower, at_most=2, unit=" ×")


def readers(figures):
    for ours in measured_frazils(figures):
        measured = [ours, *figures.peers(without=FORGETFUL)]
        full = {name: figures.at(name, load="full", snapshots=10_000, readers=MANY) for name in measured}
        rates = {name: row.get("requests_per_s") for name, row in full.items() if row.get("requests_per_s")}
        mine = rates.pop(ours, None)
        ratios = [Ratio(mine / rate, name) for name, rate in rates.items() if mine]
        what = f"{ours}: full loads/s of {MANY} readers at 10,000 snapshots by the best peer's"
        yield compared(figures, what, min, ratios, at_least=20)
        unchanged = [row for row in figures.rows[ours] if row.get("load") == "304"]
        # What the server does beside, in the background, is counted too.
        trips = [round(row["sql_round_trips_per_load"], 1) for row in unchanged if "sql_round_trips_per_load" in row]
        yield figures.bound(f"{ours}: SQL round trips of a 304", max(trips, default=None), at_most=1)
        sizes = figures.points(ours, "snapshots")
        refs = {size: figures.at(ours, load="refs", snapshots=size, readers=1) for size in sizes}
        ends = [refs[find(refs)].get("p50_ms") for find in (max, min)] if refs else [None, None]
        grown = divided(*ends)
        what = f"{ours}: p50 of `refs`, longest history by shortest"
        yield figures.bound(what, grown, at_most=SAME, unit=" ×")


def compaction(figures):
    for ours in measured_frazils(figures):
        for column, what in (("appends_lost", "appends lost"), ("appends_retried", "appends retried")):
            yield figures.bound(f"{ours}: {what}", greatest(figures, ours, column), at_most=0)
        again = [
            row["compactions_finished"] - row["compactions_first_time"]
            for row in figures.rows[ours]
            if "compactions_finished" in row and "compactions_first_time" in row
        ]
        what = f"{ours}: compactions that did not finish the first time"
        yield figures.bound(what, max(again, default=None), at_most=0)


def many_names(figures):
    for ours in measured_frazils(figures):
        row = figures.rows[ours][0]
        note = f" (at {row.get('tables', 0):,} by 100)"
        grown = divided(row.get("tables_page_p50_ms"), row.get("tables_page_early_p50_ms"))
        yield figures.bound(f"{ours}: p50 of a page of tables", grown, at_most=SAME, unit=" ×", note=note)
        pages = [row.get(f"{place}_page_p50_ms") for place in ("first", "middle", "last")]
        slowest = max(filter(None, pages), default=None)
        grown = divided(slowest, row.get("first_page_early_p50_ms"))
        yield figures.bound(f"{ours}: p50 of any page of namespaces", grown, at_most=SAME, unit=" ×", note=note)


def memory(found):
    for ours in FRAZIL:
        own = [outcome for outcome in found.outcomes if outcome.server == ours]
        if not own:
            continue
        rest = [outcome.rss_mib_at_rest for outcome in own if outcome.rss_mib_at_rest]
        figures = Figures("W9", "all", {})
        yield figures.bound(f"{ours}: memory at rest", min(rest, default=None), at_most=30, unit=" MiB")
        after = next((outcome.rss_mib_left for outcome in own if outcome.workload == "W7"), None)
        yield figures.bound(f"{ours}: memory after W7", after, at_most=256, unit=" MiB")


JUDGES: dict[str, Callable] = {
    "W1": one_writer,
    "W2": racing_writers,
    "W3": retrying_writers,
    "W4": many_tables,
    "W5": readers,
    "W6": compaction,
    "W7": many_names,
}


def outrun(figures, ours, times_rustberg, times_others, at, where):
    """Commits a second against Rustberg's, and against those of every other peer."""
    for peers, times, named in (
        (figures.rustbergs(), times_rustberg, "Rustberg's"),
        (figures.peers(without=[RUSTBERG]), times_others, "other peers'"),
    ):
        ratios = ratios_of(figures, ours, peers, "commits_per_s", "writers", at)
        yield compared(figures, f"{ours}: commits/s by {named} {where}", min, ratios, at_least=times)


def compared(figures, what, worst, ratios, **bound):
    """A goal that the worst of the ratios decides."""
    if not ratios:
        return figures.bound(what, None, unit=" ×", **bound)
    decisive = worst(ratios, key=lambda ratio: ratio.value)
    return figures.bound(what, decisive.value, unit=" ×", note=decisive.note(), **bound)


def ratios_of(figures, ours, peers, column, point, at=lambda _: True):
    """Our figure by each peer's, at each point that both have. A peer that did nothing is behind by any factor."""
    found = []
    for peer in peers:
        for place in dict.fromkeys(figures.points(ours, point)):
            mine, theirs = figures.at(ours, **{point: place}), figures.at(peer, **{point: place})
            if at(place) and mine.get(column) is not None and theirs.get(column) is not None:
                value = mine[column] / theirs[column] if theirs[column] else float("inf")
                found.append(Ratio(value, peer, place))
    return found


def measured_frazils(figures):
    return [name for name in FRAZIL if name in figures.rows]


def greatest(figures, server, column):
    return max(figures.points(server, column), default=None)


def divided(above, below):
    return above / below if above is not None and below else None


def digits(value):
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
