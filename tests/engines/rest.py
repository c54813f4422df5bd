"""What a suite needs beside its client: plain HTTP for calls that no client has, and a look at the files."""

import json
import os
import pathlib
import time
import urllib.error
import urllib.parse
import urllib.request

WAREHOUSE = "default"
UNAUTHORIZED = 401


class Rest:
    """The catalog by plain HTTP, each call with a fresh token where there is a login."""

    def __init__(self, uri, warehouse=WAREHOUSE, login=None):
        self.uri = uri
        self.login = login
        config = self.call("GET", f"{uri}/v1/config?warehouse={warehouse}")
        prefix = {**config["defaults"], **config["overrides"]}.get("prefix")
        self.base = f"{uri}/v1/{prefix}" if prefix else f"{uri}/v1"

    def call(self, method, url, body=None):
        content = json.dumps(body).encode() if body is not None else None
        headers = {"Content-Type": "application/json"}
        if self.login:
            headers["Authorization"] = f"Bearer {self.login.token()}"
        request = urllib.request.Request(url, content, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def unregister(self, namespace, table):
        """Takes a table out of the catalog and leaves its files. Returns its last metadata location."""
        answer = self.call("POST", f"{self.base}/namespaces/{namespace}/tables/{table}/unregister")
        return answer["metadata-location"]

    def principals(self, namespace, table):
        """Who has written to a table, as its commit log names them."""
        log = self.base.replace("/v1/", "/coordination/v1/", 1)
        answer = self.call("GET", f"{log}/namespaces/{namespace}/tables/{table}/commits")
        return {commit["principal"] for commit in answer["commits"]}

    def admits(self, token):
        """Whether a token is taken."""
        request = urllib.request.Request(f"{self.uri}/v1/config", headers={"Authorization": f"Bearer {token}"})
        try:
            urllib.request.urlopen(request, timeout=30).close()
        except urllib.error.HTTPError as refusal:
            if refusal.code != UNAUTHORIZED:
                raise
            return False
        return True

    def set_ref(self, namespace, table, name, kind, snapshot):
        """Makes or moves a branch or a tag."""
        update = {"action": "set-snapshot-ref", "ref-name": name, "type": kind, "snapshot-id": snapshot}
        commit = {"requirements": [], "updates": [update]}
        self.call("POST", f"{self.base}/namespaces/{namespace}/tables/{table}", commit)


def files_below(location):
    """The files below a `file:` or `s3:` location, hidden ones left out, those of S3 as paths in the store."""
    place = urllib.parse.urlsplit(location)
    found = in_store(f"/buckets/{place.netloc}{place.path}") if place.scheme == "s3" else in_folder(place.path)
    return sorted(file for file in found if not file.name.startswith("."))


def in_folder(path):
    return (file for file in pathlib.Path(path).rglob("*") if file.is_file())


IS_FOLDER = 1 << 31


def in_store(path):
    """What the tests' store has below a folder; asked of its file system, so that no S3 client is needed."""
    url = f"{os.environ['S3_FILER']}{path}/?limit=10000"
    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            entries = json.load(answer)["Entries"] or []
    except urllib.error.HTTPError as refusal:
        if refusal.code != 404:
            raise
        return
    for entry in entries:
        if entry["Mode"] & IS_FOLDER:
            yield from in_store(entry["FullPath"])
        else:
            yield pathlib.PurePosixPath(entry["FullPath"])


def wait_until(holds, bound_s=60):
    """Waits for what the server does in the background, and asserts that it comes."""
    end = time.monotonic() + bound_s
    while not holds() and time.monotonic() < end:
        time.sleep(0.2)
    assert holds()
