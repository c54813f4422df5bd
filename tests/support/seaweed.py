"""An S3 store of the tests' own: SeaweedFS on free loopback ports, with a fresh data folder.

    seaweed.py -- COMMAND...

runs COMMAND with S3_ENDPOINT, S3_REGION, S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY set.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass

import machine
import paths
import process
from process import Failed

READY_WITHIN_S = 90
# SeaweedFS adds this to each port of its own for gRPC, so ports must lie below the difference to 65,535.
GRPC_OFFSET = 10_000
ALREADY_EXISTS, REFUSED = 409, 403


@dataclass(frozen=True)
class S3:
    """A running store. Its buckets are made through the file system below it, so that no client is needed."""

    endpoint: str
    filer: str
    region: str = "us-east-1"
    access_key_id: str = "frazil-tests"
    secret_access_key: str = "frazil-tests-secret"

    def bucket(self, name):
        """Makes the bucket where it is not there yet, and returns its URI."""
        request = urllib.request.Request(f"{self.filer}/buckets/{name}/", method="POST")
        try:
            urllib.request.urlopen(request, timeout=30).close()
        except urllib.error.HTTPError as refusal:
            if refusal.code != ALREADY_EXISTS:
                raise
        return f"s3://{name}"

    def environment(self):
        return {
            "S3_ENDPOINT": self.endpoint,
            "S3_FILER": self.filer,
            "S3_REGION": self.region,
            "S3_ACCESS_KEY_ID": self.access_key_id,
            "S3_SECRET_ACCESS_KEY": self.secret_access_key,
        }


@contextlib.contextmanager
def running(log):
    """A fresh store for the length of the block."""
    folder = paths.RUNS / "seaweed" / str(os.getpid())
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    s3_port, filer_port, volume_port, master_port = ports(4)
    store = S3(f"http://127.0.0.1:{s3_port}", f"http://127.0.0.1:{filer_port}")
    options = {
        "dir": folder / "data",
        "ip": "127.0.0.1",
        "ip.bind": "127.0.0.1",
        "master.port": master_port,
        "master.volumeSizeLimitMB": 256,
        "volume.port": volume_port,
        "volume.max": 200,
        "filer.port": filer_port,
        "s3.port": s3_port,
        "s3.port.iceberg": 0,
        "s3.port.lance": 0,
        "s3.config": identities(folder, store),
    }
    weed = machine.venv("s3", log) / "weed"
    argv = [weed, "server", "-filer", "-s3", *(f"-{name}={value}" for name, value in options.items())]
    child = process.start(argv, log, cwd=folder)
    try:
        process.wait_until_ready(child, "the S3 store", lambda: is_ready(store), READY_WITHIN_S, log.name)
        yield store
    finally:
        # An ordered end takes half a minute, and nothing of it is kept.
        process.stop(child, first=signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


def identities(folder, store):
    """The file that names the one who may do everything; all others may do nothing."""
    keys = [{"accessKey": store.access_key_id, "secretKey": store.secret_access_key}]
    actions = ["Admin", "Read", "List", "Tagging", "Write"]
    file = folder / "s3.json"
    file.write_text(json.dumps({"identities": [{"name": "tests", "credentials": keys, "actions": actions}]}))
    return file


def ports(count):
    """Free loopback ports, held together so that they differ, whose gRPC neighbours are ports too."""
    with contextlib.ExitStack() as held:
        found = []
        while len(found) < count:
            probe = held.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
            if port + GRPC_OFFSET < 2**16 and process.is_free(port + GRPC_OFFSET):
                found.append(port)
        return found


def is_ready(store):
    """Ready is a store that has made a bucket and asks strangers for their keys."""
    try:
        store.bucket("ready")
        urllib.request.urlopen(f"{store.endpoint}/ready", timeout=5).close()
    except urllib.error.HTTPError as refusal:
        return refusal.code == REFUSED
    except OSError:
        return False
    return False


def main():
    command = sys.argv[1:]
    if command[:1] != ["--"] or len(command) < 2:
        sys.exit("seaweed.py -- COMMAND...")
    paths.LOGS.mkdir(parents=True, exist_ok=True)
    with open(paths.LOGS / "seaweed.log", "w") as log, running(log) as store:
        process.run(command[1:], sys.stdout, bound_s=1800, env={**os.environ, **store.environment()})


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"{failure}")
