"""The alert rules and the dashboard below deploy/, against Prometheus' own tool and against what a server shows."""

import contextlib
import json
import re
import shutil
import subprocess
import urllib.error
import urllib.request

import paths
import process
from process import Failed
from server import serving

ALERTS = paths.REPO / "deploy" / "prometheus" / "alerts.yml"
TESTS = paths.REPO / "deploy" / "prometheus" / "alerts_test.yml"
DASHBOARD = paths.REPO / "deploy" / "grafana" / "frazil.json"
DOCUMENT = paths.REPO / "docs" / "observability.md"

ALERT = re.compile(r"- alert: (\w+)")
# A case of which something is expected.
ALERT_TEST = re.compile(r"alertname: (\w+)\n\s+exp_alerts:\n")

# A metric in an expression. What follows a histogram's name are its series.
METRIC = re.compile(r"\b(?:frazil|process)_[a-z_]+\b")
SERIES = re.compile(r"_(?:bucket|sum|count)$")


def check(bench, log):
    tool = promtool(log)
    process.run([tool, "check", "rules", ALERTS], log, 60)
    process.run([tool, "test", "rules", TESTS], log, 300)
    tried = set(ALERT_TEST.findall(TESTS.read_text()))
    refuse("alerts_test.yml shows nowhere when these fire", set(ALERT.findall(ALERTS.read_text())) - tried)
    check_queries(tool, log)
    page = page_of_a_server(bench)
    check_metrics(tool, page, log)
    named = metrics_of(expressions())
    refuse("deploy/ names metrics that docs/observability.md does not list", named - documented())
    refuse("docs/observability.md lists no metric of this page", families(page) - documented())


def promtool(log):
    """The tool on the PATH, else out of the system's package, which is fetched and not installed."""
    on_path = shutil.which("promtool")
    if on_path:
        return on_path
    home = paths.REPO / "target" / "promtool"
    tool = home / "usr" / "bin" / "promtool"
    if not tool.exists():
        home.mkdir(parents=True, exist_ok=True)
        fetch = ["apt-get", "download", "-q", "prometheus"]
        with contextlib.suppress(Failed):
            process.run(fetch, log, 300, cwd=home)
        if not list(home.glob("*.deb")):
            process.run(["apt-get", "update", "-q"], log, 300)
            process.run(fetch, log, 300, cwd=home)
        [package] = home.glob("*.deb")
        process.run(["dpkg-deb", "-x", package, home], log, 120)
        package.unlink()
    return tool


def queries():
    """What the panels of the dashboard ask for."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", [])]


def check_queries(tool, log):
    """Whether Prometheus can read the queries, each as if it were a recording rule."""
    variables = {"$__rate_interval": "5m", "$job": ".*", "$instance": ".*", "$table": ".*"}
    rules = []
    for query in queries():
        for name, value in variables.items():
            query = query.replace(name, value)
        rules.append({"record": f"query:{len(rules)}", "expr": query})
    file = paths.RUNS / "queries.yml"
    file.parent.mkdir(parents=True, exist_ok=True)
    # Whatever is JSON is YAML.
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    process.run([tool, "check", "rules", file], log, 60)


def expressions():
    """All that names metrics: the queries of the dashboard and of its variables, and the alerts."""
    variables = json.loads(DASHBOARD.read_text())["templating"]["list"]
    asked = [variable["definition"] for variable in variables if "definition" in variable]
    return [*queries(), *asked, ALERTS.read_text()]


def metrics_of(texts):
    named = {name for text in texts for name in METRIC.findall(text)}
    return {SERIES.sub("", name) for name in named}


def documented():
    return set(re.findall(r"^\| `([a-z_]+)` \|", DOCUMENT.read_text(), re.MULTILINE))


def families(page):
    return set(re.findall(r"^# TYPE ([a-z_]+) ", page, re.MULTILINE))


def refuse(what, names):
    if names:
        raise Failed(f"{what}: {', '.join(sorted(names))}")


def page_of_a_server(bench):
    """What /metrics shows after a few commits and a refusal."""
    with serving(bench.binary, "alerts", bench.store("embedded")) as frazil:
        ask(frazil, "/v1/default/namespaces", {"namespace": ["n"]})
        schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "required": False, "type": "long"}]}
        ask(frazil, "/v1/default/namespaces/n/tables", {"name": "t", "schema": schema})
        table = "/v1/default/namespaces/n/tables/t"
        for snapshot_id in (1, 2, 3):
            ask(frazil, table, append(ask(frazil, table)["metadata"], snapshot_id))
        with contextlib.suppress(urllib.error.HTTPError):
            ask(frazil, table, {"requirements": [{"type": "assert-create"}], "updates": []})
        with urllib.request.urlopen(f"{frazil.uri}/metrics", timeout=10) as answer:
            return answer.read().decode()


def ask(frazil, path, body=None):
    """GET, or POST with a body; the answer as JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(frazil.uri + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def append(metadata, snapshot_id):
    """The commit of a snapshot whose summary counts its files."""
    parent = metadata["refs"].get("main", {}).get("snapshot-id")
    totals = {"total-data-files": "3", "total-delete-files": "1", "total-files-size": "4096"}
    snapshot = {
        "snapshot-id": snapshot_id,
        "sequence-number": metadata["last-sequence-number"] + 1,
        "timestamp-ms": metadata["last-updated-ms"] + 1,
        "manifest-list": f"{metadata['location']}/metadata/snap-{snapshot_id}.avro",
        "summary": {"operation": "append", **totals},
        "schema-id": 0,
    }
    if parent is not None:
        snapshot["parent-snapshot-id"] = parent
    moved = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot_id}
    return {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": snapshot}, moved]}


def check_metrics(tool, page, log):
    """Prometheus' own rules for names and help texts."""
    done = subprocess.run([tool, "check", "metrics"], input=page, capture_output=True, text=True, timeout=60)
    log.write(done.stdout + done.stderr)
    if done.returncode != 0:
        raise Failed(f"promtool finds fault with /metrics: {(done.stdout + done.stderr).strip().splitlines()[0]}")
