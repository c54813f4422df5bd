"""Makes the namespaces, tables and views that schemathesis.toml names, in the catalog at FRAZIL_URI."""

import json
import os
import urllib.request

BASE = f"{os.environ['FRAZIL_URI']}/v1/default"
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "id", "type": "long", "required": True}],
}
TABLES = ("floe", "brash", "nilas", "doomed0", "doomed1")
VIEWS = ("seen", "doomed2", "doomed3")


def post(path, body):
    data = json.dumps(body).encode()
    request = urllib.request.Request(f"{BASE}{path}", data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30):
        pass


def version():
    """A view's first version."""
    return {
        "version-id": 1,
        "schema-id": 0,
        "timestamp-ms": 1_767_225_600_000,
        "summary": {},
        "representations": [{"type": "sql", "sql": "SELECT 1 AS id", "dialect": "spark"}],
        "default-namespace": ["kept"],
    }


def main():
    for namespace in (["kept"], ["kept", "below"], *([f"doomed{i}"] for i in range(4))):
        post("/namespaces", {"namespace": namespace, "properties": {"made-by": "seed"}})
    for namespace in ("kept", "kept%1Fbelow"):
        for table in TABLES:
            post(f"/namespaces/{namespace}/tables", {"name": table, "schema": SCHEMA})
        for view in VIEWS:
            body = {"name": view, "schema": SCHEMA, "view-version": version(), "properties": {}}
            post(f"/namespaces/{namespace}/views", body)


if __name__ == "__main__":
    main()
