"""A commit that landed reaches the catalog twice, and the sink is given the worse of the two answers.

Elsewhere this destroys the table: told of a conflict, the sink deletes the manifest list of the snapshot that landed.
"""

import json
import urllib.request

import proxy
import pytest
from readings import readings

ARRIVALS = {"one after the other": proxy.one_after_the_other, "both at once": proxy.both_at_once}
STRIPPED = {"with its key": (), "without a key": (proxy.IDEMPOTENCY_KEY,)}


@pytest.mark.parametrize("arrival", ARRIVALS)
@pytest.mark.parametrize("key", STRIPPED)
def test_a_commit_that_arrives_twice_is_answered_200_twice(uri, broker, flow, lake, report, warehouse, arrival, key):
    with proxy.running(uri, STRIPPED[key]) as between:
        sink = flow(catalog=between.uri)
        broker.send(sink.topic, readings(*range(100)))
        lake.wait_for_rows(sink.table, 100)
        between.to_next_commit(ARRIVALS[arrival])
        for last in (200, 300):
            broker.send(sink.topic, readings(*range(last - 100, last)))
            lake.wait_for_rows(sink.table, last)

        (repeated,) = between.repeated()
        assert repeated.key
        assert repeated.statuses == [200, 200]
        assert sink.states() == ["RUNNING", "RUNNING"]
    assert lake.ids(sink.table) == list(range(300))
    rounds = [each["summary"]["kafka.connect.commit-id"] for each in lake.snapshots(sink.table)]
    assert len(set(rounds)) == len(rounds)
    report.ran(warehouse, lake.commits(sink.table))


def test_the_sink_sends_each_commit_under_a_key_of_its_own(uri, broker, flow, lake, report, warehouse):
    with urllib.request.urlopen(f"{uri}/v1/config?warehouse={warehouse.name}") as answer:
        assert "idempotency-key-lifetime" in json.load(answer)
    with proxy.running(uri) as between:
        sink = flow(catalog=between.uri)
        for last in (100, 200):
            broker.send(sink.topic, readings(*range(last - 100, last)))
            lake.wait_for_rows(sink.table, last)

        keys = [commit.key for commit in between.commits]
        assert None not in keys
        assert len(set(keys)) == len(keys) >= 2
    report.ran(warehouse, lake.commits(sink.table))
