"""The clients that are libraries: suites in Go and Rust, and the programs of their pages in docs/engines.

Each has a project below tests/engines, which its own tool locks and builds.
"""

import os
import shutil

import paths
import process

GO, RUST = paths.ENGINES / "go", paths.ENGINES / "rust"


def go(arguments, log, bound_s, **environment):
    process.run(["go", *arguments], log, bound_s, cwd=GO, env={**os.environ, **environment})


def cargo(arguments, log, bound_s, project=RUST, **environment):
    # Beside what the repository itself builds, for its dependencies have other versions and features.
    environment = {**os.environ, "CARGO_TARGET_DIR": str(paths.TARGET / "engines-rust"), **environment}
    process.run(["cargo", *arguments], log, bound_s, cwd=project, env=environment)


# What is got ahead of the suite, by its name.
FETCH = {
    "go": lambda log: go(["mod", "download"], log, 600),
    "rust": lambda log: cargo(["fetch", "--locked"], log, 600),
}


def test_go(log, **environment):
    go(["vet", "./..."], log, 1200)
    go(["test", "-count=1", "-v", "./..."], log, 600, **environment)


def test_rust(log, **environment):
    cargo(["fmt", "--check", "--", "--color", "never"], log, 60)
    cargo(["test", "--locked", "--no-run"], log, 2400)
    # One at a time: DataFusion loads every table of the warehouse, and fails where one is dropped meanwhile.
    cargo(["test", "--locked", "--", "--test-threads=1"], log, 600, **environment)


def run_go(code, folder, log):
    """Runs a program's text as `main` among the modules of the suite."""
    file = folder / "main.go"
    file.write_text(code)
    go(["run", file], log, 1200)


def run_rust(code, folder, log):
    """Runs a program's text as `main.rs` of a project with the manifest and the lock of the suite."""
    project = folder / "rust"
    (project / "src").mkdir(parents=True, exist_ok=True)
    (project / "src" / "main.rs").write_text(code)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(RUST / name, project / name)
    cargo(["run", "--locked"], log, 2400, project)
