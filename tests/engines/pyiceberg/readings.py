"""The table of the suite, its rows, and short ways to read it back."""

import datetime

import pyarrow
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestampType

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=True),
    NestedField(2, "at", TimestampType(), required=True),
    NestedField(3, "place", StringType(), required=False),
    identifier_field_ids=[1],
)
BY_DAY = PartitionSpec(PartitionField(source_id=2, field_id=1000, transform=DayTransform(), name="at_day"))
ARROW = pyarrow.schema(
    [
        pyarrow.field("id", pyarrow.int64(), nullable=False),
        pyarrow.field("at", pyarrow.timestamp("us"), nullable=False),
        pyarrow.field("place", pyarrow.string()),
    ]
)


def readings(*ids, place="sound", day=1):
    """One row per id, all of one day of January 2026."""
    at = datetime.datetime(2026, 1, day, 12)
    return pyarrow.Table.from_pylist([{"id": id, "at": at, "place": place} for id in ids], schema=ARROW)


def ids(table, **scan):
    """The ids that a scan finds, sorted, doubles included."""
    return sorted(table.scan(**scan).to_arrow()["id"].to_pylist())


def places(table):
    """id -> place."""
    rows = table.scan().to_arrow()
    return dict(zip(rows["id"].to_pylist(), rows["place"].to_pylist(), strict=True))
