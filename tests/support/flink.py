"""Flink in a JVM of its own, driven statement by statement through the small server below tests/engines/flink/java."""

import contextlib
import json
import os
import pathlib
import re
import signal
import tempfile
import urllib.request

import machine
import paths
import process
from process import Failed

SOURCES = paths.ENGINES / "flink" / "java"
READY_WITHIN_S = 120
ANSWER_WITHIN_S = 300
# What Flink's own start scripts open to its serializers.
PACKAGES = ["lang", "lang.reflect", "io", "net", "nio", "text", "time", "util"]
PACKAGES += ["util.concurrent", "util.concurrent.atomic", "util.concurrent.locks"]
OPENED = [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in PACKAGES]


class FlinkError(Exception):
    """What Flink answered to a statement that failed, its causes included."""


class Flink:
    """A cluster and one session on it. Checkpoints and savepoints stay in `folder` when the process is gone."""

    def __init__(self, classpath, folder, log):
        self.classpath = classpath
        self.state = folder / "state"
        self.classes = folder / "classes"
        self.log = log

    def begin(self):
        """Starts the process and waits until it answers."""
        port = process.free_port()
        self.address = f"http://127.0.0.1:{port}/"
        logging = ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true"]
        classes = f"{self.classes}{os.pathsep}{self.classpath}"
        argv = [java("java"), "-Xmx1g", *OPENED, *logging, "-cp", classes, "frazil.flink.Driver", port, self.state]
        self.child = process.start(argv, self.log)
        process.wait_until_ready(self.child, "Flink", lambda: not process.is_free(port), READY_WITHIN_S, self.log.name)

    def kill(self):
        """Ends the process without a word, as a crash does."""
        process.stop(self.child, signal.SIGKILL)

    def end(self):
        process.stop(self.child)

    def session(self, mode, settings):
        """A fresh table environment; `mode` is batch or streaming. Knows no catalog."""
        self.ask("session", mode=mode, settings=settings)

    def run(self, sql):
        """Runs a statement to its end, the job that it starts included."""
        self.ask("run", sql=sql)

    def query(self, sql):
        """The rows that a statement finds, as tuples."""
        return [tuple(row) for row in self.ask("query", sql=sql)]

    def start(self, sql):
        """Starts the job of an INSERT and returns its id."""
        return self.ask("start", sql=sql)

    def wait(self, job):
        self.ask("wait", job=job)

    def state_of(self, job):
        """What Flink calls it: RUNNING, RESTARTING, FINISHED, FAILED and so on."""
        return self.ask("state", job=job)

    def cancel_all(self):
        self.ask("cancel-all")

    def stop_with_savepoint(self, job):
        """Stops a job; returns the location to restore from."""
        return self.ask("stop", job=job)

    def fail_at(self, row):
        """The SQL function fails_once throws at this row, counted from now on."""
        self.ask("fail-at", row=row)

    def newest_checkpoint(self, job):
        """The location of the newest complete checkpoint that a job has left."""
        complete = [file.parent for file in (self.state / job).glob("chk-*/_metadata")]
        if not complete:
            raise Failed(f"job {job} left no checkpoint")
        return max(complete, key=lambda folder: int(folder.name.removeprefix("chk-"))).as_uri()

    def ask(self, action, **request):
        body = json.dumps({"do": action, **request}).encode()
        with urllib.request.urlopen(self.address, body, timeout=ANSWER_WITHIN_S) as answer:
            told = json.load(answer)
        if "error" in told:
            raise FlinkError(told["error"])
        return told["answer"]


@contextlib.contextmanager
def running(classpath, folder):
    """A running Flink for the length of the block; its log is flink.log in `folder`."""
    with open(folder / "flink.log", "w") as log:
        flink = Flink(classpath, folder, log)
        flink.state.mkdir()
        compiler = [java("javac"), "-nowarn", "--release", "17", "-cp", classpath, "-d", flink.classes]
        process.run([*compiler, *SOURCES.rglob("*.java")], log, 120)
        flink.begin()
        try:
            yield flink
        finally:
            flink.end()


def java(tool):
    return machine.java_home() / "bin" / tool


SETTING = re.compile(r"SET '(?P<key>[^']+)' = '(?P<value>[^']*)'")


def run_script(script, folder, log):
    """Runs a script with Flink 2.1 and logs what its queries find.

    Settings (`SET 'key' = 'value'`) come first, then statements; a semicolon at the end of a line ends each.
    """
    statements = [statement.strip() for statement in re.split(r";\s*$", script, flags=re.MULTILINE)]
    settings = {}
    while found := SETTING.fullmatch(statements[0]):
        settings[found["key"]] = found["value"]
        statements.pop(0)
    own = pathlib.Path(tempfile.mkdtemp(prefix="flink-", dir=folder))
    with running(machine.classpath("flink-2.1", log), own) as flink:
        flink.session(settings.pop("execution.runtime-mode", "streaming"), settings)
        for statement in filter(None, statements):
            log.write(f"{statement}\n")
            if statement.startswith(("SELECT", "SHOW")):
                log.writelines(f"    {row}\n" for row in flink.query(statement))
            else:
                flink.run(statement)
