"""Azure's blob store of the tests' own: Azurite on a free loopback port, with a fresh data folder."""

import contextlib
import os
import shutil

import machine
import paths
import process

ACCOUNT = "devstoreaccount1"
READY_WITHIN_S = 60


@contextlib.contextmanager
def running(log):
    """A fresh store for the length of the block; gives its URL with the account."""
    folder = paths.RUNS / "azurite" / str(os.getpid())
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    port = process.free_port()
    program = machine.npm("azurite", log) / "azurite" / "dist" / "src" / "blob" / "main.js"
    argv = ["node", program, "--blobHost", "127.0.0.1", "--blobPort", port, "--location", folder, "--silent"]
    child = process.start([*argv, "--skipApiVersionCheck"], log, cwd=folder)
    try:
        process.wait_until_ready(child, "Azurite", lambda: not process.is_free(port), READY_WITHIN_S, log.name)
        yield f"http://127.0.0.1:{port}/{ACCOUNT}"
    finally:
        process.stop(child)
        shutil.rmtree(folder, ignore_errors=True)
