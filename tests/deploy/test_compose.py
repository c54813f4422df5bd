"""The Compose project, run as processes of one host: in a network of its own, where each service's name is that host.

It is run by `unshare --net --mount`, so that the project's ports are free and its names are nobody else's.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import urllib.request

import paths
import postgres
import process
import pytest
import yaml

FOLDER = paths.REPO / "deploy" / "compose"
PROJECT = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES = PROJECT["services"]
CATALOG = "http://127.0.0.1:8181"
WEED = pathlib.Path(os.environ.get("WEED", "weed"))


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """A folder for what the services keep, on a host that has all their names."""
    folder = tmp_path_factory.mktemp("host")
    names = folder / "hosts"
    names.write_text(f"127.0.0.1 localhost {' '.join(SERVICES)}\n")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    subprocess.run(["mount", "--bind", names, "/etc/hosts"], check=True)
    yield folder
    subprocess.run(["umount", "/etc/hosts"], check=True)


def environment(service):
    told = {name: str(value) for name, value in SERVICES[service].get("environment", {}).items()}
    return {"PATH": f"{WEED.parent}:{os.environ['PATH']}", **told}


def words(service, **places):
    """Entry point and command of a service, with folders of a container replaced by those of the host."""
    found = []
    for word in (*SERVICES[service].get("entrypoint", ()), *SERVICES[service]["command"]):
        for inside, outside in places.items():
            word = word.replace(f"/{inside}", str(outside))
        found.append(word.replace("$$", "$"))
    return found


@contextlib.contextmanager
def running(argv, host, name, is_ready, **options):
    with open(host / f"{name}.log", "w") as log:
        child = process.start(argv, log, **options)
        try:
            process.wait_until_ready(child, name, is_ready, 60, log.name)
            yield
        finally:
            process.end_group(child)


@pytest.fixture(scope="module")
def store(host):
    """SeaweedFS, ready once its health check says so."""
    (host / "seaweedfs").mkdir()
    (host / "seaweedfs" / "s3.json").write_text(PROJECT["configs"]["s3"]["content"])
    argv = [WEED, *words("seaweedfs", data=host / "seaweedfs", etc=host)]
    url = SERVICES["seaweedfs"]["healthcheck"]["test"][-1]
    with running(argv, host, "seaweedfs", lambda: process.answers(url)):
        yield


@pytest.fixture(scope="module")
def catalog(host):
    """Frazil with the settings of the image, on a PostgreSQL server whose port is another one."""
    with open(host / "postgres.log", "w") as log, postgres.running(log) as database:
        told = environment("frazil") | {
            "FRAZIL_CONFIG": str(paths.REPO / "deploy" / "image" / "frazil.toml"),
            "FRAZIL_DATABASE_URL": database.fresh_database("frazil"),
            "FRAZIL_STORAGE_DATA_DIR": str(host / "frazil"),
        }

        def is_healthy():
            return frazil("health", env=told).returncode == 0

        with running([os.environ["FRAZIL_BINARY"], "serve"], host, "frazil", is_healthy, env=told):
            yield


def frazil(*command, env):
    argv = [os.environ["FRAZIL_BINARY"], *command]
    return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)


def make_bucket():
    return subprocess.run(words("bucket"), env=environment("bucket"), capture_output=True, text=True, timeout=60)


def make_warehouse():
    return frazil(*words("warehouse"), env=environment("warehouse"))


def ask(path, body=None):
    content = json.dumps(body).encode() if body else None
    request = urllib.request.Request(f"{CATALOG}{path}", content, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def test_bucket_and_warehouse_are_made_and_are_found_by_the_next_start(store, catalog):
    for _ in range(2):
        for made in (make_bucket(), make_warehouse()):
            assert made.returncode == 0, made.stdout + made.stderr
    assert [warehouse["name"] for warehouse in ask("/management/v1/warehouses")["warehouses"]] == ["lake"]


def test_tables_lie_in_the_bucket(store, catalog):
    assert make_bucket().returncode == 0 and make_warehouse().returncode == 0
    prefix = ask("/v1/config")["overrides"]["prefix"]
    ask(f"/v1/{prefix}/namespaces", {"namespace": ["brash"]})
    schema = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
    made = ask(f"/v1/{prefix}/namespaces/brash/tables", {"name": "readings", "schema": schema})
    assert made["metadata-location"].startswith("s3://lake/tables/")
    # Engines on this machine are told of an address that they can reach.
    assert made["config"]["s3.endpoint"] == "http://127.0.0.1:8333"
