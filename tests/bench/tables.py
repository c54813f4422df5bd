"""The results as Markdown: what they were measured on, the goals, and a table for each workload and store."""

import goals
import results
from plan import WORKLOADS
from servers import SERVERS

HIDDEN = ("target", "workload", "store")
STORES = {"file": "local files", "s3": "S3 on SeaweedFS"}


def whole(found):
    parts = [head(found), durability(found), "### Goals", goals_table(found), *floors(found)]
    for name, workload in WORKLOADS.items():
        for store in STORES:
            outcomes = found.of(name, store)
            if outcomes:
                parts += [f"### {name}, {STORES[store]}: {workload.what}", workload_table(outcomes)]
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
    return markdown(("server", "what it is", "durable when it answers"), rows)


def goals_table(found):
    rows = [(goal.workload, goal.what, goal.wanted, goal.measured, goal.verdict) for goal in goals.judged(found)]
    return markdown(("", "goal", "wanted", "measured", ""), rows)


def floors(found):
    for store, told in found.floors.items():
        yield f"### Floors, {STORES[store]}"
        yield rows_table([(None, row) for row in told.get("rows", [])])


def workload_table(outcomes):
    """A row for each point of each server; a server that could not run, or that lost something, has a row saying so."""
    table = rows_table([(outcome.server, row) for outcome in outcomes for row in outcome.rows])
    notes = [f"- {outcome.server}: {outcome.status}: {outcome.trouble}" for outcome in outcomes if outcome.trouble]
    return "\n\n".join(part for part in (table, "\n".join(notes)) if part)


def rows_table(rows):
    """`rows` are pairs of a server's name and a row; columns come in the order in which rows first have them."""
    if not rows:
        return ""
    columns = list(dict.fromkeys(key for _, row in rows for key in row if key not in HIDDEN))
    named = any(server for server, _ in rows)
    heads = (["server"] if named else []) + [column_head(column) for column in columns]
    cells = [([server] if named else []) + [shown(row.get(column)) for column in columns] for server, row in rows]
    return markdown(heads, cells)


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
        many = [row for outcome in own if outcome.workload == "W7" for row in outcome.rows]
        figures = (
            min(rest, default=None),
            greatest(load, "rss_mib_peak"),
            greatest(load, "server_cpu_ms_per_commit"),
            greatest(many, "rss_mib_after"),
        )
        if any(figure is not None for figure in figures):
            rows.append((name, *map(shown, figures)))
    heads = ("server", "at rest (MiB)", "peak in W4 (MiB)", "CPU in W4 (s/1,000 commits)", "after W7 (MiB)")
    return markdown(heads, rows) if rows else ""


def greatest(rows, column):
    return max((row[column] for row in rows if row.get(column) is not None), default=None)


def markdown(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def closing(found):
    """One line for each run, for the end of the bench."""
    for outcome in found.outcomes:
        trouble = f": {outcome.trouble}" if outcome.trouble else ""
        yield f"{outcome.workload}  {outcome.store:4}  {outcome.server:26} {outcome.took_s:5.0f} s  {outcome.status}{trouble}"
    failed = [outcome for outcome in found.outcomes if outcome.status != results.RAN]
    yield f"{len(found.outcomes) - len(failed)} ran, {len(failed)} did not come out as they must"
