"""charts/frazil/README.md, made from the comments of values.yaml.

    chart_readme.py --write

A line that begins with `# --` tells what the key below it is.
"""

import json
import re
import sys
from dataclasses import dataclass

import chart
import yaml

COMMENT = re.compile(r"\s*# -- (.*)")
KEY = re.compile(r"(\s*)([A-Za-z]+):")

HEAD = """# Chart of Frazil

An Apache Iceberg REST catalog on Kubernetes: replicas on a PostgreSQL of yours, or one pod on SQLite. This file is made from
[values.yaml](values.yaml) by `just chart-readme`.

```sh
helm install frazil charts/frazil --namespace catalog --create-namespace \\
  --set image.repository=REGISTRY/frazil \\
  --set auth.principals=true \\
  --set database.existingSecret.name=SECRET
```

- **Authentication** is not optional: without `auth.principals`, `auth.issuers` or `auth.kubernetes.enabled` the chart does not render, unless `insecure` says so.
- **The database** is PostgreSQL 15 or later, which is not part of the chart; the Secret holds its URL. `singleNode.enabled` does without it.
- **An upgrade** first migrates the database in a Job, then replaces the pods one by one. The release before works on the new tables, so nothing stops.
- **An end** takes its time: a pod is first not ready (`server.drain.noticeMs`), then finishes what is under way (`server.drain.timeoutMs`). The grace period follows from them.
- **Metrics and health** stand on a port and a Service of their own, which neither Ingress nor Gateway exposes.
- **Warehouses** are made once the catalog runs, with `frazil warehouse` ([docs/warehouses.md](../../docs/warehouses.md)). None is made by itself, unless `singleNode.enabled` is set.

Engines beside it: [deploy/examples/kubernetes](../../deploy/examples/kubernetes/README.md).

## Values

| Key | Default | |
|---|---|---|
"""


@dataclass(frozen=True)
class Row:
    key: str
    default: object
    what: str


def rows():
    """The values that have a comment, in their order."""
    text = (chart.CHART / "values.yaml").read_text()
    values, path, told, found = yaml.safe_load(text), [], None, []
    for line in text.splitlines():
        if comment := COMMENT.fullmatch(line):
            told = comment[1]
        elif key := KEY.match(line):
            path = [*path[: len(key[1]) // 2], key[2]]
            if told:
                found.append(Row(".".join(path), value_at(values, path), told))
            told = None
    return found


def value_at(values, path):
    for key in path:
        values = values[key]
    return values


def text():
    return HEAD + "".join(f"| `{row.key}` | `{json.dumps(row.default)}` | {row.what} |\n" for row in rows())


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    (chart.CHART / "README.md").write_text(text())
