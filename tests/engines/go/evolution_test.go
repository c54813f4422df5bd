package lake

import (
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"
)

func TestColumnsAreAddedRenamedMovedAndDropped(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		change := l.readings("readings").NewTransaction()
		l.check(change.UpdateSchema(true, false).
			AddColumn([]string{"depth"}, iceberg.PrimitiveTypes.Int64, "metres", false, nil).
			RenameColumn([]string{"flow"}, "discharge").
			MoveFirst([]string{"depth"}).
			Commit())
		changed := l.commit(change)
		changed = l.append(changed, `[{"depth":7,"id":4,"place":"delta","discharge":2.5}]`)

		equal(l, names(l.load("readings").Schema()), []string{"depth", "id", "place", "discharge"})
		equal(l, l.column(changed, "depth", table.WithRowFilter(iceberg.NotNull(iceberg.Reference("depth")))), []int64{7})
		equal(l, l.column(changed, "id"), []int64{1, 2, 3, 4})

		change = changed.NewTransaction()
		l.check(change.UpdateSchema(true, false).DeleteColumn([]string{"discharge"}).Commit())
		equal(l, names(l.commit(change).Schema()), []string{"depth", "id", "place"})
	})
}

func names(schema *iceberg.Schema) []string {
	found := []string{}
	for _, field := range schema.Fields() {
		found = append(found, field.Name)
	}
	return found
}

func TestPartitionsEvolveAndEveryLayoutIsRead(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		change := l.readings("readings").NewTransaction()
		l.check(change.UpdateSpec(true).AddField("id", iceberg.BucketTransform{NumBuckets: 4}, "shard").Commit())
		changed := l.append(l.commit(change), evening)

		spec := changed.Spec()
		equal(l, spec.NumFields(), 2)
		equal(l, l.column(l.load("readings"), "id"), []int64{1, 2, 3, 4})
	})
}

func TestPropertiesAreSetAndUnset(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		change := l.readings("readings").NewTransaction()
		l.check(change.SetProperties(iceberg.Properties{"team": "hydrology", "unit": "m3/s"}))
		change = l.commit(change).NewTransaction()
		l.check(change.RemoveProperties([]string{"unit"}))
		l.commit(change)

		properties := l.load("readings").Properties()
		equal(l, properties["team"], "hydrology")
		equal(l, properties["unit"], "")
	})
}

func TestATableIsUpgradedToFormat3AndItsOldRowsGetIdsToo(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		change := l.readings("readings").NewTransaction()
		l.check(change.UpgradeFormatVersion(3))
		upgraded := l.append(l.commit(change), evening)

		equal(l, upgraded.Metadata().Version(), 3)
		equal(l, *upgraded.CurrentSnapshot().FirstRowID, 0)
		equal(l, upgraded.Metadata().NextRowID(), 4)
		equal(l, l.column(l.load("readings"), "id"), []int64{1, 2, 3, 4})
	})
}
