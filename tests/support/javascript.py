"""iceberg-js: its suite, run by Node.js itself, and the program of its page in docs/engines."""

import os

import machine
import paths
import process


def test(log, **environment):
    argv = ["node", "--test", "--test-reporter", "spec", paths.ENGINES / "javascript"]
    process.run(argv, log, 120, env=os.environ | modules(log) | environment)


def run_page(code, folder, log):
    """Runs a program's text in `folder`."""
    process.run(["node", "--eval", code], log, 60, cwd=folder, env=os.environ | modules(log))


def modules(log):
    """Where programs of any folder find the client."""
    return {"NODE_PATH": str(machine.npm("javascript", log))}
