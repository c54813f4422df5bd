package lake

import (
	"errors"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
)

func TestRowsAreAppendedTwiceAndReadBack(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		first := l.readings("readings")
		l.table(first.AppendTable(l.ctx, l.rows(readings, evening), 1024, iceberg.Properties{"batch": "evening"}))

		read := l.load("readings")
		equal(l, l.column(read, "id"), []int64{1, 2, 3, 4})
		equal(l, l.column(read, "id", table.WithRowFilter(iceberg.EqualTo(iceberg.Reference("place"), "delta"))), []int64{3, 4})
		equal(l, read.CurrentSnapshot().Summary.Properties["batch"], "evening")
		equal(l, *read.CurrentSnapshot().ParentSnapshotID, first.CurrentSnapshot().SnapshotID)
	})
}

func TestThePastIsReadBySnapshot(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		first := l.readings("readings")
		second := l.append(first, evening)

		past := table.WithSnapshotID(first.CurrentSnapshot().SnapshotID)
		equal(l, l.column(second, "id", past), []int64{1, 2, 3})
		equal(l, l.column(second, "id"), []int64{1, 2, 3, 4})
	})
}

func TestRowsAreDeletedAndReplaced(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		made := l.readings("readings")

		left := l.table(made.Delete(l.ctx, iceberg.EqualTo(iceberg.Reference("id"), int64(1)), nil))
		equal(l, l.column(left, "id"), []int64{2, 3})

		l.table(left.OverwriteTable(l.ctx, l.rows(readings, evening), 1024, nil,
			table.WithOverwriteFilter(iceberg.EqualTo(iceberg.Reference("place"), "sound"))))
		equal(l, l.column(l.load("readings"), "id"), []int64{3, 4})
	})
}

func TestAnAppendThatComesSecondIsRefusedAndLandsNothing(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		seen := l.readings("readings")
		l.append(seen, evening)

		_, err := seen.AppendTable(l.ctx, l.rows(readings, night), 1024, nil)

		refused(l, err, "main has changed")
		equal(l, errors.Is(err, table.ErrCommitFailed), true)
		equal(l, l.column(l.load("readings"), "id"), []int64{1, 2, 3, 4})
	})
}

// The client tries a commit again only where the table says how often.
func TestAnAppendThatComesSecondIsTriedAgainWhereTheTableSaysSo(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		change := l.readings("readings").NewTransaction()
		l.check(change.SetProperties(iceberg.Properties{"commit.retry.num-retries": "4"}))
		seen := l.commit(change)
		l.append(seen, evening)

		l.append(seen, night)

		equal(l, l.column(l.load("readings"), "id"), []int64{1, 2, 3, 4, 5})
	})
}

func TestATransactionOverTwoTablesLandsInBoth(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		both, err := catalog.NewMultiTableTransaction(l.catalog)
		l.check(err)
		for _, last := range []string{"readings", "archive"} {
			change := l.readings(last).NewTransaction()
			l.must(change.AppendTable(l.ctx, l.rows(readings, evening), 1024, nil))
			l.check(both.AddTransaction(change))
		}

		tables, err := both.CommitAndReload(l.ctx)
		l.must(err)
		for _, t := range tables {
			equal(l, l.column(t, "id"), []int64{1, 2, 3, 4})
		}
	})
}

func TestOldSnapshotsExpire(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		change := l.append(l.readings("readings"), evening).NewTransaction()
		l.check(change.ExpireSnapshots(table.WithRetainLast(1), table.WithOlderThan(0)))
		l.commit(change)

		kept := l.load("readings")
		equal(l, len(kept.Metadata().Snapshots()), 1)
		equal(l, l.column(kept, "id"), []int64{1, 2, 3, 4})
	})
}

func TestARollbackBringsOldRowsBack(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		first := l.readings("readings")
		change := l.append(first, evening).NewTransaction()
		l.check(change.RollbackToSnapshot(first.CurrentSnapshot().SnapshotID))
		l.commit(change)

		equal(l, l.column(l.load("readings"), "id"), []int64{1, 2, 3})
	})
}
