"""Azure's blob store of the tests' own: Azurite on a free loopback port, with a fresh data folder."""

import contextlib
import os
import shutil
import time

import machine
import paths
import process
from process import Failed

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
        wait_until_listening(port, child)
        yield f"http://127.0.0.1:{port}/{ACCOUNT}"
    finally:
        process.stop(child)
        shutil.rmtree(folder, ignore_errors=True)


def wait_until_listening(port, child):
    end = time.monotonic() + READY_WITHIN_S
    while process.is_free(port):
        if child.poll() is not None or time.monotonic() > end:
            raise Failed("Azurite does not listen: see the log")
        time.sleep(0.1)
