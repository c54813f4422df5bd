"""The fuzz targets: built once, and each run over its kept corpus first and then for a bounded time."""

import os
import shutil
import tomllib

import machine
import paths
import process

FUZZ = paths.REPO / "fuzz"
BUILT = paths.TARGET / "fuzz"

SECONDS = 60
# What is enough for any input of the corpus many times over, and little enough for a leak to be found in a minute.
MEMORY_MB = 1024
ONE_INPUT_S = 20

# Documents that the unit tests read are seeds too, without a copy of them.
MORE_SEEDS = {"document": [paths.REPO / "server" / "catalog" / "tests" / "metadata"]}


def run_all(bench, log):
    build(log)
    for target in targets():
        run(target, log)


def targets():
    manifest = tomllib.loads((FUZZ / "Cargo.toml").read_text())
    return [target["name"] for target in manifest["bin"]]


def build(log):
    """Instrumented for coverage alone.

    An address sanitizer would look for faults of memory, of which code without `unsafe` has none, and costs speed, the
    nightly compiler, and most of the build again. The flags for coverage are unstable on their own.
    """
    cargo_fuzz = machine.venv("cargo-fuzz", log) / "cargo-fuzz"
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
    argv = [cargo_fuzz, "build", "--sanitizer", "none", "--fuzz-dir", FUZZ, "--target-dir", BUILT]
    process.run(argv, log, 1800, cwd=paths.REPO, env=environment)


def run(target, log):
    """Raises `Failed` on a crash; the input that crashed is then in target/test-logs, and its name in the log."""
    [binary] = BUILT.glob(f"*/release/{target}")
    found = paths.RUNS / "fuzz" / target
    shutil.rmtree(found, ignore_errors=True)
    found.mkdir(parents=True)
    corpus = [FUZZ / "corpus" / target, *MORE_SEEDS.get(target, [])]
    limits = [f"-rss_limit_mb={MEMORY_MB}", f"-timeout={ONE_INPUT_S}"]
    argv = [binary, *limits, "-verbosity=0", "-print_final_stats=1", f"-artifact_prefix={paths.LOGS}/fuzz-{target}-"]
    process.run([*argv, "-runs=0", *corpus], log, 120)
    dictionary = FUZZ / "dict" / f"{target}.dict"
    words = [f"-dict={dictionary}"] if dictionary.exists() else []
    process.run([*argv, *words, f"-max_total_time={SECONDS}", found, *corpus], log, SECONDS + 120)
