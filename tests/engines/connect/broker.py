"""A Kafka broker of the suite's own: one JVM, which is its own controller, on free loopback ports."""

import contextlib
import json
import os
import time

import process
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from jvm import java, write_properties

CLUSTER_ID = "frazilfrazilfrazilfraw"
READY_WITHIN_S = 90


class Broker:
    """A running broker and the topics on it."""

    def __init__(self, address):
        self.address = address
        # The library would write to the test's output that the broker is gone, which it is at the end.
        quiet = {"bootstrap.servers": address, "log_level": 0}
        self.admin = AdminClient(quiet)
        self.producer = Producer({**quiet, "enable.idempotence": True, "linger.ms": 5})

    def create_topic(self, name, partitions=1):
        """Makes the topic where it is not there yet."""
        if name in self.admin.list_topics(timeout=READY_WITHIN_S).topics:
            return
        for made in self.admin.create_topics([NewTopic(name, partitions, 1)]).values():
            made.result(READY_WITHIN_S)

    def send(self, topic, records, partitions=1):
        """Writes each record as JSON text, spread by its id over the partitions, and waits until all are stored."""
        for record in records:
            key, value = str(record["id"]), json.dumps(record)
            self.producer.produce(topic, key=key, value=value, partition=record["id"] % partitions)
        assert self.producer.flush(60) == 0

    def answers(self):
        try:
            return bool(self.admin.list_topics(timeout=2).brokers)
        except KafkaException:
            return False


@contextlib.contextmanager
def running(home):
    """A broker for the length of the block, with its data and its log in the folder `home`."""
    classpath = os.environ["KAFKA_CLASSPATH"]
    port, controller = process.free_port(), process.free_port()
    settings = write_properties(home / "broker.properties", properties(home, port, controller))
    with open(home / "broker.log", "w") as log:
        storage = ("format", "-t", CLUSTER_ID, "-c", settings)
        process.run(java(classpath, "kafka.tools.StorageTool", *storage), log, READY_WITHIN_S)
        child = process.start(java(classpath, "kafka.Kafka", settings), log)
        try:
            yield ready(Broker(f"127.0.0.1:{port}"), child)
        finally:
            process.stop(child)


def properties(home, port, controller):
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "log.dirs": home / "broker",
        # One broker holds all of the internal topics, and few partitions of them start faster.
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "group.initial.rebalance.delay.ms": 0,
    }


def ready(broker, child):
    end = time.monotonic() + READY_WITHIN_S
    while not broker.answers():
        assert child.poll() is None and time.monotonic() < end, "the broker did not start: see broker.log"
        time.sleep(0.2)
    return broker
