"""Two workers share a connector. They are killed and come back, and every row arrives once."""

import time

import flow as flows
import page
import proxy
import pytest
import worker as connect
from lake import ARRIVE_WITHIN_S
from readings import readings
from rest import wait_until

PARTITIONS = 2
BATCH = 200


@pytest.fixture(scope="module")
def group(home, broker, plugins):
    """Two distributed workers with the settings of the page."""
    addresses = {"bootstrap.servers": broker.address, "plugin.path": plugins}
    settings = page.settings("distributed-worker", addresses)
    members = [connect.distributed(home, f"worker-{number}", settings) for number in (1, 2)]
    with connect.running(*members):
        yield members


class Stream:
    """Readings with ever higher ids, written to all partitions of a topic."""

    def __init__(self, broker, topic):
        self.broker, self.topic = broker, topic
        self.sent = 0

    def go_on(self, batches=1):
        for _ in range(batches):
            self.broker.send(self.topic, readings(*range(self.sent, self.sent + BATCH)), PARTITIONS)
            self.sent += BATCH


@pytest.fixture
def stream(broker, name):
    broker.create_topic(name, PARTITIONS)
    return Stream(broker, name)


@pytest.fixture
def between(uri):
    with proxy.running(uri) as between:
        yield between


@pytest.fixture
def table(group, stream, between, sink, name):
    """The table that one connector fills with a task on each worker, reached through the proxy."""
    one, two = group
    one.run(sink({**flows.properties(name), "tasks.max": PARTITIONS}, catalog=between.uri))
    wait_until(lambda: set(one.ports(name).values()) == {one.port, two.port})
    yield flows.table_of(name)
    one.delete(name)


def coordinator(group, lake, name):
    """The worker that has the task which made the newest commit, and the other one."""
    task = lake.snapshots(flows.table_of(name))[-1]["summary"]["kafka.connect.task-id"]
    port = group[0].ports(name)[int(task.removeprefix(f"{name}-"))]
    return sorted(group, key=lambda worker: worker.port != port)


def until_snapshots(stream, lake, table, wanted):
    """Goes on with the stream until the table has that many snapshots."""
    while lake.count(table) == 0 or lake.commits(table) < wanted:
        stream.go_on()
        time.sleep(0.1)


def settle(stream, lake, table):
    """Waits until all rows have arrived, and then for a round more, which would bring what comes twice."""
    lake.wait_for_rows(table, stream.sent)
    stream.go_on()
    lake.wait_for_rows(table, stream.sent)
    assert lake.ids(table) == list(range(stream.sent))


def test_a_coordinator_killed_amid_its_rounds_loses_no_row_and_doubles_none(
    group, stream, table, lake, name, report, warehouse
):
    until_snapshots(stream, lake, table, 3)
    victim, survivor = coordinator(group, lake, name)
    stream.go_on()
    victim.kill()
    stream.go_on(5)
    victim.start()
    stream.go_on(5)

    settle(stream, lake, table)
    victim.wait_until_ready()
    wait_until(lambda: survivor.states(name) == ["RUNNING"] * (1 + PARTITIONS))
    lake.record(table, "two-workers")
    report.ran(warehouse, lake.commits(table))


def test_a_coordinator_killed_before_it_hears_that_its_commit_landed_doubles_no_row(
    group, stream, between, table, lake, name, report, warehouse
):
    until_snapshots(stream, lake, table, 2)
    victim, survivor = coordinator(group, lake, name)

    def landed_and_killed(send):
        answer = send()
        victim.kill()
        return [answer]

    between.to_next_commit(landed_and_killed)
    stream.go_on()
    wait_until(victim.has_ended, ARRIVE_WITHIN_S)
    victim.start()
    stream.go_on(5)

    settle(stream, lake, table)
    victim.wait_until_ready()
    wait_until(lambda: survivor.states(name) == ["RUNNING"] * (1 + PARTITIONS))
    report.ran(warehouse, lake.commits(table))


def test_workers_killed_before_their_first_commit_is_sent_lose_no_row(
    group, stream, between, table, lake, name, report, warehouse
):
    def never_sent(_):
        for worker in group:
            worker.kill()
        return [proxy.Answer(503, [], b"")]

    between.to_next_commit(never_sent)
    stream.go_on()
    wait_until(lambda: all(worker.has_ended() for worker in group), ARRIVE_WITHIN_S)
    for worker in group:
        worker.start()

    settle(stream, lake, table)
    for worker in group:
        worker.wait_until_ready()
    report.ran(warehouse, lake.commits(table))
