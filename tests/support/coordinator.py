"""Trino in one process: a coordinator that is its own worker, with the catalog files of docs/engines/trino.md."""

import contextlib

import machine
import pages
import paths
import process
import readme

JAVA = 25
READY_WITHIN_S = 300
PAGE = paths.REPO / "docs" / "engines" / "trino.md"
# What the page has in the places of the addresses.
FRAZIL, S3_ENDPOINT = "http://127.0.0.1:8181", "http://127.0.0.1:9000"


def version():
    return machine.VERSIONS["maven"]["trino"]["trino.version"]


def catalog(warehouse, uri, login=None):
    """The page's catalog file for a warehouse and a login, with the addresses of this run.

    Secrets of the store stay names of the environment.
    """
    blocks = {block["name"]: block["code"] for block in readme.BLOCK.finditer(PAGE.read_text())}
    text = blocks[f"trino-{warehouse.scheme}"].replace(FRAZIL, uri)
    if warehouse.s3:
        text = text.replace(S3_ENDPOINT, warehouse.s3.endpoint)
    if login:
        text += pages.logging_in("trino", uri, login)
    return text


@contextlib.contextmanager
def running(catalogs, folder, log, memory="1g"):
    """Trino for the length of the block, with catalogs by name; gives its port. `folder` takes the catalog files."""
    files = [folder / f"{name}.properties" for name in catalogs]
    for file in files:
        file.write_text(catalogs[file.stem])
    port = process.free_port()
    java = machine.java_home(JAVA) / "bin" / "java"
    argv = [java, f"-Xmx{memory}", "--add-modules=jdk.incubator.vector", "--enable-native-access=ALL-UNNAMED"]
    argv += ["-cp", machine.classpath("trino", log), paths.ENGINES / "trino" / "Server.java", port, *files]
    child = process.start(argv, log, cwd=folder)
    try:
        process.wait_until_ready(child, "Trino", lambda: told_ready(log), READY_WITHIN_S, log.name)
        yield port
    finally:
        process.stop(child)


def told_ready(log):
    with open(log.name, errors="replace") as told:
        return any("READY http" in line for line in told)
