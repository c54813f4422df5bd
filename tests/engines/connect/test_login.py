"""The sink logs in: as a principal of the catalog's own, and as one of an OpenID provider."""

from readings import readings


def test_its_commits_bear_the_name_of_its_principal(broker, flow, lake, login, principals):
    sink = flow()
    broker.send(sink.topic, readings(1, 2))
    lake.wait_for_rows(sink.table, 2)

    assert principals(sink.table) == {login.principal}


def test_a_sink_outlives_its_tokens(broker, flow, lake, past_expiry):
    sink = flow()
    written = past_expiry(lambda id: broker.send(sink.topic, readings(id)))
    lake.wait_for_rows(sink.table, len(written))

    assert lake.ids(sink.table) == written
    assert sink.states() == ["RUNNING", "RUNNING"]
