"""JSON records of a topic into a table, with the settings of the page."""

from readings import readings


def test_the_settings_of_the_page_carry_records_into_a_table_that_they_make(
    broker, worker, sink, lake, report, warehouse
):
    broker.create_topic("readings")
    connector = worker.run(sink({}))
    try:
        broker.send("readings", readings(*range(1000)))
        lake.wait_for_rows("floe.readings", 1000)

        assert lake.rows("floe.readings", "id", "place") == sorted((id, f"place {id % 7}") for id in range(1000))
        assert worker.states(connector) == ["RUNNING", "RUNNING"]
    finally:
        worker.delete(connector)
    report.ran(warehouse, lake.commits("floe.readings"))


def test_a_field_that_the_table_lacks_becomes_a_column(broker, flow, lake, report, warehouse):
    sink = flow()
    broker.send(sink.topic, readings(1, 2))
    lake.wait_for_rows(sink.table, 2)
    broker.send(sink.topic, readings(3, flow=0.7))
    lake.wait_for_rows(sink.table, 3)

    assert lake.rows(sink.table, "id", "flow") == [(1, None), (2, None), (3, 0.7)]
    assert [str(field.field_type) for field in lake.table(sink.table).schema().fields] == ["long", "string", "double"]
    report.ran(warehouse, lake.commits(sink.table))


def test_every_round_is_one_append_that_names_itself_and_its_offsets_of_the_control_topic(
    broker, flow, lake, report, warehouse
):
    sink = flow()
    for last in (100, 200, 300):
        broker.send(sink.topic, readings(*range(last - 100, last)))
        lake.wait_for_rows(sink.table, last)

    snapshots = lake.snapshots(sink.table)
    rounds = [each["summary"]["kafka.connect.commit-id"] for each in snapshots]
    offsets = f"kafka.connect.offsets.control-{sink.topic}.connect-{sink.connector}"
    reached = [int(each["summary"][offsets].removeprefix('{"0":').removesuffix("}")) for each in snapshots]
    assert {each["operation"] for each in snapshots} == {"append"}
    assert len(set(rounds)) == len(rounds) >= 3
    assert reached == sorted(set(reached))
    lake.record(sink.table, "append")
    report.ran(warehouse, lake.commits(sink.table))
