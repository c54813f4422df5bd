"""The image as the Dockerfile makes it: what is in it, how it starts, and whether it serves."""

import json
import os
import pathlib
import stat
import subprocess
import urllib.request

import buildah
import process
import pytest

SMALLER_THAN_BYTES = 60_000_000
USER = 65532


@pytest.fixture(scope="module")
def image():
    buildah.forget()
    yield buildah.build("frazil", "--build-arg", "ROOT=prepared", "--timestamp", "0")
    buildah.forget()


@pytest.fixture(scope="module")
def settings(image):
    return buildah.settings(image)


@pytest.fixture(scope="module")
def container(image):
    with buildah.container(image) as name:
        yield name


@pytest.fixture(scope="module")
def root(container):
    with buildah.mounted(container) as folder:
        yield pathlib.Path(folder)


def files(root):
    """Size and time of each file, without what the runtime puts in before it starts a program."""
    own = ("etc/frazil", "etc/ssl", "usr", "data")
    found = {}
    for file in sorted(file for part in own for file in (root / part).rglob("*") if not file.is_dir()):
        told = file.lstat()
        found[str(file.relative_to(root))] = (told.st_size, told.st_mtime_ns)
    return found


def test_it_is_small(root):
    assert sum(size for size, _ in files(root).values()) < SMALLER_THAN_BYTES


def test_it_holds_a_binary_and_what_belongs_to_it_alone(root):
    assert list(files(root)) == [
        "etc/frazil/frazil.toml",
        "etc/ssl/certs/ca-certificates.crt",
        "usr/bin/frazil",
        "usr/share/frazil/LICENSE",
        "usr/share/frazil/frazil.cdx.json",
        "usr/share/frazil/third-party-licences.txt",
    ]


def test_the_binary_needs_no_libraries(root):
    # The kernel would hand a binary with this segment to a loader, which is not there.
    headers = subprocess.run(["readelf", "-l", root / "usr/bin/frazil"], capture_output=True, text=True, check=True)
    assert "INTERP" not in headers.stdout


def test_it_is_not_root_and_owns_its_data_folder_alone(settings, root):
    assert settings["User"] == f"{USER}:{USER}"
    assert (root / "data").stat().st_uid == USER
    for name in files(root):
        told = (root / name).stat()
        assert told.st_uid == 0 and not told.st_mode & (stat.S_IWGRP | stat.S_IWOTH), name


def test_it_says_how_it_starts_ends_and_is_asked_for_its_health(settings):
    assert settings["Entrypoint"] == ["/usr/bin/frazil"]
    assert settings["Cmd"] == ["serve"]
    assert settings["StopSignal"] == "SIGTERM"
    assert settings["Healthcheck"]["Test"] == ["CMD", "/usr/bin/frazil", "health"]
    assert list(settings["Volumes"]) == ["/data"]
    assert list(settings["ExposedPorts"]) == ["8181/tcp"]
    assert settings["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"


def test_the_same_files_make_the_same_layers(image):
    again = buildah.build("again", "--build-arg", "ROOT=prepared", "--timestamp", "0", "--no-cache")
    assert buildah.layers(again) == buildah.layers(image)


def test_without_settings_it_refuses_to_serve_everybody(container):
    told = run(container, "/usr/bin/frazil", "serve")
    assert told.returncode == 1
    assert "insecure" in told.stderr


def run(container, *command, **options):
    argv = list(map(str, buildah.run_argv(container, *command, **options)))
    return subprocess.run(argv, capture_output=True, text=True, timeout=60)


@pytest.fixture
def serving(container, tmp_path):
    """The address of a server in the container."""
    listen = f"127.0.0.1:{process.free_port()}"
    argv = buildah.run_argv(container, "/usr/bin/frazil", "serve", environment={"FRAZIL_SERVER_LISTEN": listen})
    with open(tmp_path / "server.log", "w") as log:
        child = process.start(argv, log)
        try:
            ready = f"http://{listen}/health/ready"
            process.wait_until_ready(child, "the server", lambda: process.answers(ready), 60, log.name)
            yield listen
        finally:
            process.stop(child)
            process.end_group(child)


def test_it_serves_and_writes_nowhere_but_to_its_volume(container, root, serving):
    before = files(root)
    with urllib.request.urlopen(f"http://{serving}/v1/config", timeout=5) as answer:
        assert json.load(answer)["overrides"]["prefix"] == "default"
    told = run(container, "/usr/bin/frazil", "health", environment={"FRAZIL_SERVER_LISTEN": serving})
    assert told.returncode == 0, told.stderr
    assert files(root) == before
    (database,) = buildah.volume_files("frazil.db")
    assert database.stat().st_uid == USER


def test_names_are_found_without_libraries(container, serving):
    uri = f"http://{serving.replace('127.0.0.1', 'localhost')}"
    told = run(container, "/usr/bin/frazil", "health", "--url", uri)
    assert told.returncode == 0, told.stderr


def test_health_says_no_where_nobody_serves(container):
    told = run(container, "/usr/bin/frazil", "health", "--url", f"http://127.0.0.1:{process.free_port()}")
    assert told.returncode == 1
    assert "no answer from" in told.stderr


def bill(root):
    return json.loads((root / "usr/share/frazil/frazil.cdx.json").read_text())


def test_the_bill_of_materials_is_one(root):
    from cyclonedx.schema import OutputFormat, SchemaVersion
    from cyclonedx.validation import make_schemabased_validator

    validator = make_schemabased_validator(OutputFormat.JSON, SchemaVersion.V1_6)
    assert validator.validate_str((root / "usr/share/frazil/frazil.cdx.json").read_text()) is None


def test_the_bill_names_what_is_linked_and_no_test_tool(root):
    names = {component["name"] for component in bill(root)["components"]}
    assert {"axum", "sqlx", "rustls", "catalog", "store-postgres"} <= names
    assert not names & {"tempfile", "proptest", "criterion", "iceberg"}
    assert bill(root)["metadata"]["component"]["name"] == "frazil"


def test_every_crate_is_under_a_licence_that_is_told(root):
    told = (root / "usr/share/frazil/third-party-licences.txt").read_text()
    for component in bill(root)["components"]:
        assert component["licenses"], component["name"]
        if "hashes" in component:
            assert f"{component['name']} {component['version']}: " in told
