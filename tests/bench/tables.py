"""The results as Markdown: what they were measured on, the goals, and a table for each workload and store."""

import goals
from markdown import table
from plan import WORKLOADS
from results import NO_FIGURES
from servers import SERVERS

# What the tables show of a row, in this order; results.json has all of it. Workloads that are not here show everything.
LATENCY = ("p50_ms", "p95_ms", "p99_ms")
CROWD = ("writers", "success_rate", "commits_per_s", "attempts_per_commit", "exhausted_retries", "fairness", *LATENCY)
COUNTERS = ("server_cpu_ms_per_commit", "sql_round_trips_per_commit", "object_puts_per_commit")
QUIET = ("quiet_alone_p50_ms", "quiet_beside_p50_ms", "hot_commits_per_s")
APPENDS = ("appends", "appends_lost", "appends_late", "appends_retried", "append_p50_ms", "append_p99_ms")
COMPACTIONS = ("compactions", "compactions_finished", "compactions_first_time", "files_rewritten_in_vain")
LOADS = ("load_p50_ms", "load_p99_ms")
PAGES = ("tables_page_early_p50_ms", "tables_page_p50_ms", "first_page_early_p50_ms", "last_page_p50_ms")
FLOORS = ("bytes", "floor_put_p50_ms", "floor_update_p50_ms", "floor_p50_ms", "floor_p99_ms")
COLUMNS = {
    "W1": ("snapshots", "p50_ms", "p99_ms", "floor_p50_ms", "ratio_to_floor", "bytes_written", "bytes_sent", *COUNTERS),
    "W2": (*CROWD, "server_cpu_ms_per_commit"),
    "W3": (*CROWD, "server_cpu_ms_per_commit"),
    "W4": ("writers", "tables", "commits_per_s", *LATENCY, *QUIET, "rss_mib_peak", "server_cpu_ms_per_commit"),
    "W5": ("snapshots", "load", "readers", "requests_per_s", *LATENCY, "bytes", "sql_round_trips_per_load"),
    "W6": ("appends_per_s", *APPENDS, *COMPACTIONS),
    "W7": ("namespaces", "tables", "creates_per_s", "loads_per_s", *LOADS, *PAGES, "rss_mib_after"),
    "W8": ("like", "writers", "replicas", "success_rate", "commits_per_s", "fairness", *LATENCY, "swaps_lost"),
}
STORES = {"file": "local files", "s3": "S3 on SeaweedFS"}


def whole(found):
    parts = [head(found), durability(found), "### Goals", goals_table(found), *floors(found)]
    for name, workload in WORKLOADS.items():
        for store in STORES:
            outcomes = found.of(name, store)
            if outcomes:
                parts += [f"### {name}, {STORES[store]}: {workload.what}", workload_table(outcomes, COLUMNS.get(name))]
    if at_rest(found):
        parts += ["### W9: memory and processor time", at_rest(found)]
    return "\n\n".join(part for part in parts if part) + "\n"


def head(found):
    about = found.about
    machine = about["machine"]
    where = f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, Linux {machine['kernel']}"
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    settings = ", ".join(f"{name}: {value}" for name, value in about["settings"].items())
    return f"`{about['preset']}` of {about['began']}, commit `{about['commit']}`, on {where}.\n{versions}.\n{settings}."


def durability(found):
    names = dict.fromkeys(outcome.server for outcome in found.outcomes)
    rows = [(name, SERVERS[name].what, SERVERS[name].durable) for name in names if name in SERVERS]
    rows += [(name, "by URL", "not known") for name in names if name not in SERVERS]
    return table(("server", "what it is", "durable when it answers"), rows)


def goals_table(found):
    rows = [(goal.workload, goal.what, goal.wanted, goal.measured, goal.verdict) for goal in goals.judged(found)]
    return table(("", "goal", "wanted", "measured", ""), rows)


def floors(found):
    for store, told in found.floors.items():
        yield f"### Floors, {STORES[store]}"
        yield rows_table([(None, row) for row in told.get("rows", [])], FLOORS)


def workload_table(outcomes, columns=None):
    """A row for each point of each server; below it, who could not run, lost something, or left a point out."""
    figures = rows_table([(outcome.server, row) for outcome in outcomes for row in outcome.rows], columns)
    notes = [f"- {outcome.server}: {outcome.status}: {outcome.trouble}" for outcome in outcomes if outcome.trouble]
    notes += [f"- {outcome.server}: {left_out}" for outcome in outcomes for left_out in outcome.left_out()]
    return "\n\n".join(part for part in (figures, "\n".join(notes)) if part)


def rows_table(rows, wanted=None):
    """`rows` are pairs of a server's name and a row; without `wanted`, columns come as rows first have them."""
    rows = [(server, row) for server, row in rows if not any(key in row for key in NO_FIGURES)]
    present = list(dict.fromkeys(key for _, row in rows for key in row))
    columns = [column for column in wanted or present if column in present]
    if not columns:
        return ""
    named = any(server for server, _ in rows)
    heads = (["server"] if named else []) + [column_head(column) for column in columns]
    cells = [([server] if named else []) + [shown(row.get(column)) for column in columns] for server, row in rows]
    return table(heads, cells)


UNITS = {"_ms": " (ms)", "_mib": " (MiB)", "_per_s": "/s"}


def column_head(column):
    """`p50_ms` as `p50 (ms)`, `commits_per_s` as `commits/s`."""
    for ending, unit in UNITS.items():
        if column.endswith(ending):
            return column.removesuffix(ending).replace("_", " ") + unit
    return column.replace("_per_", "/").replace("_", " ")


def shown(value):
    """Three digits that mean something, and no more."""
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int) or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def at_rest(found):
    """W9 is what the other workloads told of memory and processor time."""
    rows = []
    for name in dict.fromkeys(outcome.server for outcome in found.outcomes):
        own = [outcome for outcome in found.outcomes if outcome.server == name]
        rest = [outcome.rss_mib_at_rest for outcome in own if outcome.rss_mib_at_rest]
        load = [row for outcome in own if outcome.workload == "W4" for row in outcome.rows]
        left = [outcome.rss_mib_left for outcome in own if outcome.workload == "W7"]
        figures = (
            min(rest, default=None),
            greatest(load, "rss_mib_peak"),
            greatest(load, "server_cpu_ms_per_commit"),
            next(iter(left), None),
        )
        if any(figure is not None for figure in figures):
            rows.append((name, *map(shown, figures)))
    heads = ("server", "at rest (MiB)", "peak in W4 (MiB)", "CPU in W4 (s/1,000 commits)", "after W7 (MiB)")
    return table(heads, rows) if rows else ""


def greatest(rows, column):
    return max((row[column] for row in rows if row.get(column) is not None), default=None)
