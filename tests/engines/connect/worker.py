"""Kafka Connect workers: started as standalone or as members of a group, and asked through their REST interface."""

import contextlib
import json
import os
import pathlib
import signal
import time
import urllib.error
import urllib.request
from dataclasses import dataclass

import process
from jvm import java, write_properties

READY_WITHIN_S = 120
NOT_YET, REBALANCES = 404, 409


@dataclass
class Worker:
    """A worker, running or not."""

    main: str
    settings: pathlib.Path
    port: int
    child: object = None

    def start(self):
        with open(self.settings.with_suffix(".log"), "a") as log:
            self.child = process.start(java(os.environ["KAFKA_CLASSPATH"], self.main, self.settings), log)

    def kill(self):
        process.stop(self.child, signal.SIGKILL)

    def stop(self):
        process.stop(self.child)

    def has_ended(self):
        return self.child.poll() is not None

    def call(self, method, path, body=None):
        """The answer of the REST interface, asked again while the group rebalances."""
        data = json.dumps(body).encode() if body is not None else None
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        end = time.monotonic() + READY_WITHIN_S
        while True:
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return json.loads(answer.read() or "null")
            except urllib.error.HTTPError as refusal:
                if refusal.code != REBALANCES or time.monotonic() > end:
                    raise
            time.sleep(0.2)

    def wait_until_ready(self):
        end = time.monotonic() + READY_WITHIN_S
        while not self.is_ready():
            assert not self.has_ended() and time.monotonic() < end, f"no worker: see {self.settings.stem}.log"
            time.sleep(0.2)

    def is_ready(self):
        try:
            return self.call("GET", "/health")["status"] == "healthy"
        except OSError:
            return False

    def run(self, connector):
        """Starts the connector with these properties and waits until all of its tasks run."""
        name = connector["name"]
        self.call("PUT", f"/connectors/{name}/config", connector)
        end = time.monotonic() + READY_WITHIN_S
        while self.states(name) != ["RUNNING"] * (1 + int(connector["tasks.max"])):
            assert time.monotonic() < end, self.status(name)
            time.sleep(0.2)
        return name

    def status(self, name):
        try:
            return self.call("GET", f"/connectors/{name}/status")
        except urllib.error.HTTPError as refusal:
            if refusal.code != NOT_YET:
                raise
            return {"connector": {"state": "UNASSIGNED"}, "tasks": []}

    def states(self, name):
        """The states of the connector and of each of its tasks."""
        status = self.status(name)
        return [part["state"] for part in (status["connector"], *status["tasks"])]

    def ports(self, name):
        """The port of the worker that has each of the connector's tasks, by the task's number."""
        return {task["id"]: int(task["worker_id"].rpartition(":")[2]) for task in self.status(name)["tasks"]}

    def delete(self, name):
        self.call("DELETE", f"/connectors/{name}")


def standalone(home, settings):
    return made("org.apache.kafka.connect.cli.ConnectStandalone", home / "standalone.properties", settings)


def distributed(home, name, settings):
    return made("org.apache.kafka.connect.cli.ConnectDistributed", home / f"{name}.properties", settings)


def made(main, file, settings):
    port = process.free_port()
    return Worker(main, write_properties(file, {**settings, "listeners": f"http://127.0.0.1:{port}"}), port)


@contextlib.contextmanager
def running(*workers):
    """The workers for the length of the block."""
    with contextlib.ExitStack() as started:
        for worker in workers:
            worker.start()
            started.callback(worker.stop)
        for worker in workers:
            worker.wait_until_ready()
        yield workers


def plugins(folder):
    """Fills a plug-in folder as Connect wants it: one folder per plug-in, with links to its jars."""
    for name, variable in (("iceberg", "SINK_CLASSPATH"), ("debezium", "DEBEZIUM_CLASSPATH")):
        (folder / name).mkdir(parents=True)
        for jar in map(pathlib.Path, os.environ[variable].split(os.pathsep)):
            (folder / name / jar.name).symlink_to(jar)
    return folder
