"""What a suite needs beside its client: plain HTTP for calls that no client has, and a look at the files."""

import json
import pathlib
import time
import urllib.parse
import urllib.request

WAREHOUSE = "default"


class Rest:
    """The catalog by plain HTTP."""

    def __init__(self, uri, warehouse=WAREHOUSE):
        config = self.call("GET", f"{uri}/v1/config?warehouse={warehouse}")
        prefix = {**config["defaults"], **config["overrides"]}.get("prefix")
        self.base = f"{uri}/v1/{prefix}" if prefix else f"{uri}/v1"

    @staticmethod
    def call(method, url):
        request = urllib.request.Request(url, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def unregister(self, namespace, table):
        """Takes a table out of the catalog and leaves its files. Returns its last metadata location."""
        answer = self.call("POST", f"{self.base}/namespaces/{namespace}/tables/{table}/unregister")
        return answer["metadata-location"]


def files_below(location):
    """The files below a `file:` location, hidden ones left out."""
    folder = pathlib.Path(urllib.parse.urlsplit(location).path)
    return sorted(file for file in folder.rglob("*") if file.is_file() and not file.name.startswith("."))


def wait_until(holds, bound_s=60):
    """Waits for what the server does in the background, and asserts that it comes."""
    end = time.monotonic() + bound_s
    while not holds() and time.monotonic() < end:
        time.sleep(0.2)
    assert holds()
