"""A running server as the load generator is told of it, and servers that somebody else runs."""

import pathlib
import urllib.error
import urllib.parse
import urllib.request

from process import Failed

# What a server insists on or leaves undone, which the generator must know: see `traits`.
TRAITS = ("always-stage-create", "keeps-history", "registers", "chooses-location")
FILES = ("root", "endpoint", "region", "access-key-id", "secret-access-key")


def traits(registers=True, keeps_history=True, chooses_location=False, always_stage_create=False, properties=()):
    """`registers`: takes register-table. `keeps-history`: retains every snapshot. `chooses-location`: a client cannot
    choose where a table lies. `always-stage-create`: the field must be in a request to create a table.
    `create-properties`: what the generator gives each table."""
    return {
        "registers": registers,
        "keeps-history": keeps_history,
        "chooses-location": chooses_location,
        "always-stage-create": always_stage_create,
        "create-properties": dict(properties),
    }


def target(room, name, uris, warehouse, pids, traits, token=None, metrics=None):
    """The document that the generator reads. `uris` are the bases of `/v1/config`, one for each replica."""
    return {
        "name": name,
        "uri": uris[0],
        "also": uris[1:],
        "warehouse": warehouse,
        "token": token,
        "store": room.files(),
        "pids": pids,
        "metrics": metrics,
        "floor-postgres": room.backends.postgres.url(),
        "traits": traits,
    }


def answers(uri, warehouse, token=None):
    """Whether the catalog tells its configuration."""
    request = urllib.request.Request(f"{uri}/v1/config?warehouse={urllib.parse.quote(warehouse, safe='')}")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def elsewhere(spec):
    """The name and the target of `--other NAME=URL,KEY=VALUE,…`: a server that this run neither starts nor stops."""
    name, _, rest = spec.partition("=")
    url, *options = rest.split(",")
    if not name or not url.startswith("http"):
        raise Failed(f"--other {spec!r} is not NAME=URL,warehouse=…,root=…,KEY=VALUE")
    told = dict(option.partition("=")[::2] for option in options)
    unknown = set(told) - {"warehouse", "token", "pid", *FILES, *TRAITS}
    if unknown:
        raise Failed(f"--other {name}: nobody knows {', '.join(sorted(unknown))}")
    if "root" not in told:
        raise Failed(f"--other {name} lacks root=…, the place of its tables: file:///FOLDER or s3://BUCKET/PREFIX")
    files = {key: told[key] for key in FILES if key in told}
    kind = urllib.parse.urlparse(told["root"]).scheme
    observed = traits() | {key: told[key] == "true" for key in TRAITS if key in told}
    return name, {
        "name": name,
        "uri": url.rstrip("/"),
        "also": [],
        "warehouse": told.get("warehouse", "default"),
        "token": told.get("token"),
        "store": {"kind": kind, **files},
        "pids": [int(told["pid"])] if "pid" in told else [],
        "metrics": None,
        "floor-postgres": None,
        "traits": observed,
    }


def resident_mib(pids):
    """Memory that processes and their children hold, or None where none is known."""
    if not pids:
        return None
    return round(sum(status_kib(pid, "VmRSS") for root in pids for pid in [root, *children(root)]) / 1024, 1)


def children(pid):
    listed = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    direct = [int(word) for word in listed.read_text().split()] if listed.exists() else []
    return [found for child in direct for found in [child, *children(child)]]


def status_kib(pid, key):
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    except FileNotFoundError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{key}:")), 0)
