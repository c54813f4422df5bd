"""Branches, tags, time travel, rollback and expiry."""

import pytest
from readings import ids, readings


@pytest.fixture
def two_snapshots(table):
    table.append(readings(1))
    table.append(readings(2))
    return table


def test_a_branch_takes_writes_that_main_does_not_see(two_snapshots):
    table = two_snapshots
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "audit").commit()

    table.append(readings(3), branch="audit")

    assert ids(table) == [1, 2]
    assert sorted(table.scan().use_ref("audit").to_arrow()["id"].to_pylist()) == [1, 2, 3]

    table.manage_snapshots().remove_branch("audit").commit()
    assert set(table.refs()) == {"main"}


def test_a_tag_keeps_its_snapshot_readable(two_snapshots):
    table = two_snapshots
    first = table.snapshots()[0].snapshot_id
    table.manage_snapshots().create_tag(first, "q1", max_ref_age_ms=86_400_000).commit()

    table.append(readings(3))

    assert table.scan().use_ref("q1").to_arrow()["id"].to_pylist() == [1]
    assert table.refs()["q1"].max_ref_age_ms == 86_400_000
    table.manage_snapshots().remove_tag("q1").commit()
    assert "q1" not in table.refs()


def test_old_snapshots_are_read_by_id_and_by_time(two_snapshots):
    first, second = two_snapshots.snapshots()

    assert ids(two_snapshots, snapshot_id=first.snapshot_id) == [1]
    assert two_snapshots.snapshot_as_of_timestamp(first.timestamp_ms).snapshot_id == first.snapshot_id
    assert two_snapshots.snapshot_as_of_timestamp(second.timestamp_ms).snapshot_id == second.snapshot_id
    assert two_snapshots.snapshot_as_of_timestamp(first.timestamp_ms - 1) is None


def test_a_rollback_moves_main_back_and_forgets_nothing(two_snapshots):
    first, second = two_snapshots.snapshots()

    two_snapshots.manage_snapshots().rollback_to_snapshot(first.snapshot_id).commit()

    assert ids(two_snapshots) == [1]
    assert ids(two_snapshots, snapshot_id=second.snapshot_id) == [1, 2]
    assert [entry.snapshot_id for entry in two_snapshots.history()] == [
        first.snapshot_id,
        second.snapshot_id,
        first.snapshot_id,
    ]


def test_an_expired_snapshot_is_gone_and_the_rows_stay(two_snapshots):
    first = two_snapshots.snapshots()[0].snapshot_id

    two_snapshots.maintenance.expire_snapshots().by_id(first).commit()

    assert two_snapshots.refresh().snapshot_by_id(first) is None
    assert ids(two_snapshots) == [1, 2]
    with pytest.raises(ValueError, match="Snapshot not found"):
        two_snapshots.scan(snapshot_id=first).to_arrow()
