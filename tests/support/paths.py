"""Where things are: the repository, what cargo builds, and what the tests write."""

import os
import pathlib

REPO = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or REPO / "target").absolute()
ENGINES = REPO / "tests" / "engines"

# Tools and jars depend on the pinned versions alone; logs and data belong to this working copy.
VENVS = REPO / "target" / "venvs"
JARS = REPO / "target" / "jars"
UNPACKED = REPO / "target" / "unpacked"
NPM = REPO / "target" / "npm"
CLASSPATHS = REPO / "target" / "classpaths"
LOGS = REPO / "target" / "test-logs"
RUNS = REPO / "target" / "test-runs"
REPORTS = LOGS / "engines"
