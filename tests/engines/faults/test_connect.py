"""Kafka Connect's sink on two workers: its commits are repeated, answered late or not at all, and it commits twice.

Where a commit has no answer the sink gives up, and somebody restarts it; that is done here as well.
"""

import collections
import contextlib
import itertools
import os
import signal
import threading
import time

import broker as kafka
import flow as flows
import page
import proxy
import pytest
import storm
import streams
import worker as connect
from lake import ARRIVE_WITHIN_S, Lake
from readings import readings
from rest import wait_until

PARTITIONS = 2
LATE_S = 10
ENDS_WITHIN_S = 1500
# Or a worker that stands still is missed after 45 s only.
MISSED_SOON = {"consumer.override.session.timeout.ms": "6000", "consumer.override.heartbeat.interval.ms": "1000"}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("connect")


@pytest.fixture(scope="module")
def broker(home):
    with kafka.running(home) as broker:
        yield broker


@pytest.fixture(scope="module")
def group(home, broker):
    """Two distributed workers with the settings of the page."""
    addresses = {"bootstrap.servers": broker.address, "plugin.path": connect.plugins(home / "plugins")}
    settings = page.settings("distributed-worker", addresses)
    members = [connect.distributed(home, f"worker-{number}", settings) for number in (1, 2)]
    with connect.running(*members):
        yield members


@pytest.fixture
def lake(uri, warehouse):
    return Lake(uri, warehouse)


class Sink:
    """A connector with a task on each of the two workers, its topic and its table."""

    def __init__(self, broker, group, lake, name):
        self.broker, self.group, self.lake, self.name = broker, group, lake, name
        self.table = flows.table_of(name)
        self.sent = 0
        self.restarts = 0

    def send(self, count):
        self.broker.send(self.name, readings(*range(self.sent, self.sent + count)), PARTITIONS)
        self.sent += count

    def mend(self):
        """Restarts what has failed, as an operator would."""
        with contextlib.suppress(OSError):
            if "FAILED" in self.group[0].states(self.name):
                self.group[0].call("POST", f"/connectors/{self.name}/restart?includeTasks=true&onlyFailed=true")
                self.restarts += 1

    def coordinator(self):
        """The worker that has the task which made the newest commit."""
        task = self.lake.snapshots(self.table)[-1]["summary"]["kafka.connect.task-id"]
        port = self.group[0].ports(self.name)[int(task.removeprefix(f"{self.name}-"))]
        return next(worker for worker in self.group if worker.port == port)

    def settle(self):
        """Waits until all records have arrived, and then for a round more, which would bring what comes twice."""
        for more in (0, PARTITIONS):
            self.send(more)
            end = time.monotonic() + 2 * ARRIVE_WITHIN_S
            while (found := self.lake.count(self.table)) < self.sent:
                assert time.monotonic() < end, f"{found} of {self.sent} records"
                self.mend()
                time.sleep(0.5)

    def assert_each_record_once(self):
        assert self.lake.ids(self.table) == list(range(self.sent))
        table = self.lake.table(self.table)
        paths = table.inspect.files()["file_path"].to_pylist()
        assert [path for path, count in collections.Counter(paths).items() if count > 1] == []
        rounds = [each["summary"]["kafka.connect.commit-id"] for each in self.lake.snapshots(self.table)]
        assert len(set(rounds)) == len(rounds)


@pytest.fixture
def sink(broker, group, between, lake, warehouse, name):
    broker.create_topic(name, PARTITIONS)
    place = {"iceberg.catalog.uri": between.uri, "iceberg.catalog.warehouse": warehouse.name}
    changed = {**flows.properties(name), "tasks.max": PARTITIONS, **place}
    one, two = group
    one.run({**page.settings("sink", changed), **MISSED_SOON})
    wait_until(lambda: set(one.ports(name).values()) == {one.port, two.port})
    yield Sink(broker, group, lake, name)
    one.delete(name)


def late(send):
    """The catalog's answer is a while under way."""
    answer = send()
    time.sleep(LATE_S)
    return [answer]


def test_every_record_arrives_once_however_its_commits_are_answered(sink, node, between, size, tell):
    repeated = [proxy.one_after_the_other, proxy.both_at_once, late]
    answered = list(itertools.islice(itertools.cycle(repeated), size.repeated))
    between.faults.extend(fault for trouble in answered for fault in (proxy.once, trouble))
    between.faults.extend(storm.over(node, size.kills, size.lost, size.calm))
    end = time.monotonic() + ENDS_WITHIN_S
    while sink.sent < size.records or between.faults:
        assert time.monotonic() < end
        sink.send(size.batch)
        sink.mend()
        time.sleep(1)
    sink.settle()

    tell(records=sink.sent, restarts=sink.restarts, **streams.outcomes(between))
    sink.assert_each_record_once()


def test_two_coordinators_commit_each_record_once(sink, between, size, tell):
    for _ in range(size.zombies):
        there = len(between.commits)
        while len(between.commits) < there + 3:
            sink.send(size.batch)
            sink.mend()
            time.sleep(1)
        freeze(sink, between, sink.coordinator())
    sink.settle()

    tell(records=sink.sent, restarts=sink.restarts, **streams.outcomes(between))
    sink.assert_each_record_once()


def freeze(sink, between, worker):
    """The worker stands still with a commit under way, which arrives after the first one of its successor."""
    arrived = threading.Event()

    def held(send):
        os.kill(worker.child.pid, signal.SIGSTOP)
        there = len(between.commits)
        wait_until(lambda: len(between.commits) > there, ARRIVE_WITHIN_S)
        answer = send()
        os.kill(worker.child.pid, signal.SIGCONT)
        arrived.set()
        return [answer]

    between.to_next_commit(held)
    while not arrived.is_set():
        sink.send(PARTITIONS)
        time.sleep(1)
    worker.wait_until_ready()
