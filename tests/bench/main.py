"""Runs the benchmarks: one workload after the other, each against one fresh server after the other."""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import documents
import machine
import paths
import plan
import postgres
import process
import results
import room
import seaweed
import tables
from process import Failed
from results import COULD_NOT, IN_PART, LOST, RAN, Outcome, Results
from servers import SERVERS
from target import elsewhere, resident_mib

# What the generator's exit status means; 0: it ran, and every table is as it must be.
STATUS_LOST = 1
# How the generator begins a failure that says nothing of what the tables hold.
POINT_FAILED = "the point "
ROW = re.compile(r"W\d \S+: (\{.*\})$")
# A server is left alone for so long before its memory at rest is read.
SETTLE_S = 3
FLOOR_BYTES = "20000,200000,5000000"
FLOOR_WITHIN_S = 120


def main():
    options = arguments()
    if options.report:
        return report_again(options)
    others = dict(elsewhere(spec) for spec in options.other)
    preset = plan.PRESETS[options.preset]
    stores = [(name, told["store"]["kind"]) for name, told in others.items()]
    planned = plan.runs(preset, split(options.only), split(options.servers), options.store, stores)
    print("\n".join(plan.told(planned, preset)), flush=True)
    if options.plan or not planned:
        return 0
    # An ordered end, with everything stopped that was started, on a signal too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped by SIGTERM"))
    bench = Bench(options, preset, others)
    found = bench.run(planned)
    write(found, bench.out, options)
    return status(found)


def arguments():
    parser = argparse.ArgumentParser(prog="tests/bench/run", description=__doc__)
    parser.add_argument("--preset", choices=plan.PRESETS, default="quick", help="how much is measured (default: quick)")
    parser.add_argument("--only", metavar="W1,W2", help="these workloads alone")
    parser.add_argument("--servers", metavar="A,B", help=f"these servers alone, of: {', '.join(SERVERS)}")
    parser.add_argument("--store", choices=("file", "s3"), help="tables on this kind of store alone")
    parser.add_argument("--set", action="append", default=[], metavar="[W1.]KEY=V", help="a parameter of the generator")
    parser.add_argument("--plan", action="store_true", help="tell what would run, and stop")
    parser.add_argument("--binary", type=os.path.abspath, metavar="FILE", help="use this frazil and build none")
    parser.add_argument("--generator", type=os.path.abspath, metavar="FILE", help="use this frazil-bench likewise")
    parser.add_argument("--out", type=pathlib.Path, metavar="DIR", help="results (default: target/bench/TIME)")
    parser.add_argument("--no-plots", action="store_true", help="tables alone, for which nothing is installed")
    parser.add_argument("--write-docs", action="store_true", help="put tables and plots into docs/benchmarks.md")
    parser.add_argument("--report", type=pathlib.Path, metavar="DIR", help="run nothing: write tables and plots anew")
    other = "a server that runs already: NAME=URL,warehouse=…,root=…,KEY=VALUE,… (see docs/benchmarks.md)"
    parser.add_argument("--other", action="append", default=[], metavar="SPEC", help=other)
    return parser.parse_args()


def parameters(pairs, workload):
    """Those of `--set` that a workload gets: `KEY=V` goes to all, `W1.KEY=V` to W1."""
    named = {name for name in plan.WORKLOADS if any(pair.startswith(f"{name}.") for pair in pairs)}
    others = tuple(f"{name}." for name in named - {workload})
    return [pair.removeprefix(f"{workload}.") for pair in pairs if not pair.startswith(others)]


def split(words):
    return [word.strip() for word in words.split(",")] if words else None


class Bench:
    """One bench: its binaries, its folder of results, and the time that it has."""

    def __init__(self, options, preset, others):
        self.options = options
        self.preset = preset
        self.others = others
        stamp = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
        self.out = (options.out or paths.TARGET / "bench" / stamp).absolute()
        self.logs = self.out / "runs"
        self.data = self.out / "data"
        release = paths.TARGET / "release"
        self.binary = options.binary or release / "frazil"
        self.generator = options.generator or release / "frazil-bench"

    def run(self, planned):
        self.logs.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            log = stack.enter_context(open(self.out / "backends.log", "w"))
            absent = self.prepare(planned, log)
            needs_s3 = any(run.store == "s3" for run in planned)
            database = stack.enter_context(postgres.running(log))
            backends = room.Backends(database, stack.enter_context(seaweed.running(log)) if needs_s3 else None)
            stack.callback(shutil.rmtree, self.data, ignore_errors=True)
            about = results.about(self.preset, self.binary)
            ends = time.monotonic() + self.preset.limit_s
            stores = dict.fromkeys(run.store for run in planned)
            found = Results(about, {store: self.floor(store, backends) for store in stores}, [])
            for run in planned:
                found.outcomes.append(self.outcome(run, backends, absent, ends))
                tell(found.outcomes[-1])
                found.write(self.out / "results.json")
            return found

    def prepare(self, planned, log):
        """Builds and fetches; this counts for nothing. Gives the servers that are not to be had, with the reason."""
        machine.install_packages(log)
        if not (self.options.binary and self.options.generator):
            print("building", flush=True)
            build = ["cargo", "build", "--locked", "--release", "--workspace", "--bins"]
            process.run(build, log, 3600, cwd=paths.REPO, env={**os.environ, "SQLX_OFFLINE": "true"})
        absent = {}
        for name in dict.fromkeys(run.server for run in planned if run.server in SERVERS):
            try:
                SERVERS[name].fetch(log)
            except Failed as failure:
                absent[name] = str(failure)
        return absent

    def floor(self, store, backends):
        """What no catalog can be faster than on this store: one PUT, one guarded UPDATE, both one after the other."""
        with room.made(f"floor-{store}", store, self.data, self.logs, backends) as place:
            target = {"name": "floor", "uri": "", "also": [], "warehouse": "", "token": None, "pids": []}
            target |= {"store": place.files(), "metrics": None, "floor-postgres": backends.postgres.url(), "traits": {}}
            options = ["--bytes", FLOOR_BYTES, "--postgres", place.database()]
            _, told, trouble = self.generate(place.name, ["floor", *options], target, FLOOR_WITHIN_S)
        if trouble:
            print(f"floor on {store}: {trouble}", flush=True)
        return told

    def outcome(self, run, backends, absent, ends):
        """What came of a run, whatever happens: a server that cannot be measured is a row that says so."""
        began = time.monotonic()
        result = {"status": COULD_NOT}
        if run.server in absent:
            result["trouble"] = absent[run.server]
        elif began + run.expected_s > ends:
            result["trouble"] = f"no time was left of {self.preset.limit_s // 60} minutes"
        else:
            try:
                result = self.measure(run, backends, min(run.bound_s, ends - began))
            except (Failed, OSError, subprocess.SubprocessError) as failure:
                result["trouble"] = str(failure)
        return Outcome(run.workload, run.store, run.server, took_s=round(time.monotonic() - began, 1), **result)

    def measure(self, run, backends, bound_s):
        with contextlib.ExitStack() as stack:
            at_rest = None
            if run.server in self.others:
                target = self.others[run.server] | {"floor-postgres": backends.postgres.url()}
            else:
                place = stack.enter_context(room.made(run.name, run.store, self.data, self.logs, backends))
                target = stack.enter_context(SERVERS[run.server].start(place, run.server, self.binary))
                time.sleep(SETTLE_S)
                at_rest = resident_mib(target["pids"])
            words = ["run", run.workload, "--preset", self.preset.name]
            pairs = [*run.parameters, *parameters(self.options.set, run.workload)]
            words += [word for pair in pairs for word in ("--set", pair)]
            status, told, trouble = self.generate(run.name, words, target, bound_s)
            memory = {"rss_mib_at_rest": at_rest, "rss_mib_left": resident_mib(target["pids"])}
            return {"status": status, "trouble": trouble, "told": told, **memory}

    def generate(self, name, words, target, bound_s):
        """Runs the generator. Gives a status, what it wrote, and the trouble if there was any."""
        target_file, out_file = self.logs / f"{name}.target.json", self.logs / f"{name}.json"
        target_file.write_text(json.dumps(target, indent=1))
        out_file.unlink(missing_ok=True)
        log_file = self.logs / f"{name}.log"
        with open(log_file, "w") as log:
            argv = [self.generator, *words, "--target", target_file, "--out", out_file]
            child = process.start(argv, log)
            try:
                ended = child.wait(bound_s)
            except subprocess.TimeoutExpired:
                return COULD_NOT, {"rows": rows_so_far(log_file)}, f"still ran after {bound_s:.0f} s"
            finally:
                process.end_group(child)
        told = json.loads(out_file.read_text()) if out_file.exists() else {}
        if ended == 0:
            return RAN, told, None
        if ended == STATUS_LOST and told:
            lost = [failure for failure in told["failures"] if not failure.startswith(POINT_FAILED)]
            return (LOST, told, "; ".join(lost[:3])) if lost else (IN_PART, told, None)
        return COULD_NOT, told, last_line(log_file)


def rows_so_far(log_file):
    """The points that a run had measured when it was ended: the generator tells each as it goes."""
    found = (ROW.match(line) for line in log_file.read_text(errors="replace").splitlines())
    return [json.loads(row[1]) for row in found if row]


def last_line(log_file):
    lines = log_file.read_text(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else f"the generator said nothing: see {log_file}"


def tell(outcome):
    trouble = f": {outcome.trouble}" if outcome.trouble else ""
    where = f"{outcome.workload}  {outcome.store:4}  {outcome.server:26}"
    print(f"{where} {outcome.took_s:5.0f} s  {outcome.status}{trouble}", flush=True)


def report_again(options):
    write(Results.read(options.report / "results.json"), options.report, options)
    return 0


def write(found, out, options):
    """Tables and plots of results that are there."""
    found.write(out / "results.json")
    (out / "report.md").write_text(tables.whole(found))
    plots = [] if options.no_plots else draw(out)
    if options.write_docs:
        documents.write(found, plots)
    print(f"\nresults: {os.path.relpath(out)}", flush=True)


def draw(out):
    """Plots as SVG and PNG; gives their files."""
    folder = out / "plots"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with open(out / "plots.log", "w") as log:
        python = machine.venv("bench", log) / "python"
        process.run([python, pathlib.Path(__file__).with_name("plots.py"), out / "results.json", folder], log, 300)
    return sorted(folder.iterdir())


def status(found):
    """Fails where anybody lost or doubled anything, and where a server of ours could not be measured throughout."""
    lost = [outcome for outcome in found.outcomes if outcome.status == LOST]
    own = [outcome for outcome in found.outcomes if ours(outcome.server)]
    broken = [outcome for outcome in own if outcome.status == COULD_NOT]
    left_out = [outcome for outcome in own if outcome.left_out()]
    for outcome in lost:
        print(f"{outcome.server} lost or doubled something in {outcome.workload}: {outcome.trouble}")
    for outcome in broken:
        print(f"{outcome.server} could not run {outcome.workload}: {outcome.trouble}")
    for outcome in left_out:
        print(f"{outcome.server} left out a point of {outcome.workload}: {'; '.join(outcome.left_out())}")
    return 1 if lost or broken or left_out else 0


def ours(server):
    return server in SERVERS and SERVERS[server].ours


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"{failure}")
