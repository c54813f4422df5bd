"""Runs the tests of this repository: installs what they need, builds once, runs the suites, prints a table."""

import argparse
import contextlib
import fnmatch
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass

import cargo_suites
import engines_table
import machine
import paths
import postgres
import seaweed
import server
import suites
from bench import Bench
from process import Failed

TAIL_LINES = 60


@dataclass(frozen=True)
class Result:
    name: str
    took_s: float
    trouble: str | None


def main():
    options = arguments()
    chosen = choose(options)
    if options.list:
        for suite in chosen:
            print(f"{suite.name:20} {suite.what}{kind(suite)}")
        return 0
    # An ordered end, with everything stopped that was started, on a signal too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped by SIGTERM"))
    if not options.only:
        shutil.rmtree(paths.REPORTS, ignore_errors=True)
    paths.REPORTS.mkdir(parents=True, exist_ok=True)
    report = Report()
    report.step("install", lambda log: install(chosen, log))
    if not report.failed():
        try:
            run(chosen, options.binary, report)
        except Failed as failure:
            report.add(Result("backends", 0, str(failure)), paths.LOGS / "postgres.log")
    return report.close()


def kind(suite):
    return " (wide)" if suite.wide else " (faults)" if suite.faults else ""


def install(chosen, log):
    machine.check_tools({tool for suite in chosen for tool in suite.tools})
    machine.install_packages(log)


def arguments():
    parser = argparse.ArgumentParser(prog="tests/run", description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the suites and stop")
    parser.add_argument("--only", metavar="A,B", help="run these suites alone; 'rck' stands for 'rck-*'")
    parser.add_argument("--except", dest="without", metavar="A,B", help="leave these out")
    parser.add_argument("--all", action="store_true", help="run the wide suites too, which take longer")
    parser.add_argument("--faults", action="store_true", help="run the long proofs under faults, and nothing else")
    parser.add_argument("--binary", metavar="FILE", type=os.path.abspath, help="use this frazil and build none")
    return parser.parse_args()


def choose(options):
    """The suites that the options name, in their order. A pattern that names none is an error."""
    chosen = [suite for suite in suites.SUITES if options.list or suite.faults == options.faults]
    chosen = [suite for suite in chosen if options.all or options.list or not suite.wide]
    if options.only:
        named = matching(options.only)
        chosen = [suite for suite in suites.SUITES if suite.name in named]
    if options.without:
        named = matching(options.without)
        chosen = [suite for suite in chosen if suite.name not in named]
    return chosen


def matching(patterns):
    named = set()
    for pattern in patterns.split(","):
        found = [suite.name for suite in suites.SUITES if fits(suite.name, pattern.strip())]
        if not found:
            sys.exit(f"no suite is named {pattern!r}; see tests/run --list")
        named.update(found)
    return named


def fits(name, pattern):
    return fnmatch.fnmatch(name, pattern) or name.startswith(f"{pattern}-")


def run(chosen, binary, report):
    """Cargo's suites and the engines' run beside each other: while one waits for a client, the other has the cores."""
    with contextlib.ExitStack() as stack:
        database = stack.enter_context(postgres.running(stack.enter_context(open(paths.LOGS / "postgres.log", "w"))))
        s3 = stack.enter_context(seaweed.running(stack.enter_context(open(paths.LOGS / "seaweed.log", "w"))))
        bench = Bench(binary or server.built(), database, s3)
        engines = [suite for suite in chosen if suite not in suites.CARGO]
        ahead = threading.Thread(target=fetch_ahead, args=(chosen,), daemon=True)
        ahead.start()
        if not binary:
            report.step("build", cargo_suites.build)
        ahead.join()
        if report.failed():
            return
        beside = threading.Thread(target=run_each, args=(engines, bench, report), daemon=True)
        beside.start()
        run_each([suite for suite in chosen if suite in suites.CARGO], bench, report)
        beside.join()


def run_each(chosen, bench, report):
    for suite in chosen:
        report.step(suite.name, lambda log, suite=suite: suite.run(bench, log))


def fetch_ahead(chosen):
    """Fetches clients while cargo builds. What fails here is tried again, and reported, by the suite itself."""
    with open(paths.LOGS / "fetch.log", "w") as log:
        try:
            for suite in chosen:
                for name in suite.needs:
                    machine.fetch(name, log)
        except Failed as failure:
            log.write(f"{failure}\n")


class Report:
    """Runs steps, each into its own log, and keeps how they came out."""

    def __init__(self):
        self.results = []
        self.lock = threading.Lock()

    def step(self, name, body):
        began = time.monotonic()
        log_file = paths.LOGS / f"{name}.log"
        with open(log_file, "w") as log:
            trouble = self.attempt(body, log)
        self.add(Result(name, time.monotonic() - began, trouble), log_file)

    def add(self, result, log_file):
        with self.lock:
            self.results.append(result)
            self.tell(result, log_file)

    @staticmethod
    def attempt(body, log):
        try:
            body(log)
        except Failed as failure:
            return str(failure)
        except Exception as error:  # A broken suite is a failed suite; the others go on.
            traceback.print_exc(file=log)
            return f"{type(error).__name__}: {error}"
        return None

    @staticmethod
    def tell(result, log_file):
        print(f"{'FAILED' if result.trouble else 'ok':6} {result.name} ({result.took_s:.0f} s)", flush=True)
        if result.trouble:
            lines = log_file.read_text(errors="replace").splitlines()[-TAIL_LINES:]
            print("\n".join([f"    {line}" for line in lines] + [f"  {result.trouble}"]), flush=True)

    def failed(self):
        return [result for result in self.results if result.trouble]

    def close(self):
        """Prints the table and the closing line; returns the exit status."""
        if engines_table.rows():
            print(f"\n{engines_table.whole()}")
        print(f"\nlogs: {os.path.relpath(paths.LOGS)}")
        for result in self.results:
            minutes, seconds = divmod(round(result.took_s), 60)
            outcome = f"FAILED: {result.trouble}" if result.trouble else "passed"
            print(f"  {result.name:20} {minutes:3}:{seconds:02}  {outcome}")
        failed = len(self.failed())
        print(f"\n{len(self.results) - failed} passed, {failed} failed", flush=True)
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
