package lake

import (
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/apache/iceberg-go/view"
)

func TestNamespacesAreMadeListedAlteredAndDropped(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		rivers := table.Identifier{l.namespace, "rivers"}
		l.must(l.catalog.CreateNamespace(l.ctx, rivers, iceberg.Properties{"team": "hydrology", "unit": "l/s"}))
		refused(l, l.catalog.CreateNamespace(l.ctx, rivers, nil), "already exists")
		_, err := l.catalog.UpdateNamespaceProperties(l.ctx, rivers, []string{"unit"}, iceberg.Properties{"river": "Fraser"})
		l.must(err)

		properties, err := l.catalog.LoadNamespaceProperties(l.ctx, rivers)
		l.must(err)
		equal(l, properties["team"]+properties["river"]+properties["unit"], "hydrologyFraser")
		children, err := l.catalog.ListNamespaces(l.ctx, table.Identifier{l.namespace})
		l.must(err)
		equal(l, children, []table.Identifier{rivers})
		refused(l, l.catalog.DropNamespace(l.ctx, table.Identifier{l.namespace}), "not empty")

		l.must(l.catalog.DropNamespace(l.ctx, rivers))
		exists, err := l.catalog.CheckNamespaceExists(l.ctx, rivers)
		l.must(err)
		equal(l, exists, false)
	})
}

func TestMoreNamespacesThanOnePageHoldsAreAllListed(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		for _, letter := range strings.Split("abcdefghijklmnopqrstuvwxyz", "") {
			l.must(l.catalog.CreateNamespace(l.ctx, table.Identifier{l.namespace, letter}, nil))
		}

		children, err := l.catalog.ListNamespaces(l.ctx, table.Identifier{l.namespace})
		l.must(err)
		equal(l, len(children), 26)
	})
}

func TestATableIsWhatItWasMadeAs(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		spec := iceberg.NewPartitionSpec(
			iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "shard", Transform: iceberg.BucketTransform{NumBuckets: 4}},
			iceberg.PartitionField{SourceIDs: []int{2}, FieldID: 1001, Name: "site", Transform: iceberg.TruncateTransform{Width: 2}},
		)
		order, err := table.NewSortOrder(1, []table.SortField{
			{SourceIDs: []int{3}, Transform: iceberg.IdentityTransform{}, Direction: table.SortDESC, NullOrder: table.NullsLast},
		})
		l.check(err)
		l.table(l.catalog.CreateTable(l.ctx, l.name("made"), readings, catalog.WithPartitionSpec(&spec),
			catalog.WithSortOrder(order), catalog.WithProperties(iceberg.Properties{"team": "hydrology", "format-version": "2"})))

		made := l.load("made")
		equal(l, made.Schema().Fields(), readings.Fields())
		laid := made.Spec()
		equal(l, laid.NumFields(), 2)
		equal(l, made.SortOrder().Len(), 1)
		equal(l, made.Properties()["team"], "hydrology")
		equal(l, made.Metadata().Version(), 2)
		equal(l, made.CurrentSnapshot() == nil, true)
		_, err = l.catalog.CreateTable(l.ctx, l.name("made"), readings)
		refused(l, err, "already exists")
	})
}

func TestARenamedTableKeepsItsRows(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		l.readings("readings")

		l.table(l.catalog.RenameTable(l.ctx, l.name("readings"), l.name("archive")))

		equal(l, l.tables(), []string{"archive"})
		equal(l, l.column(l.load("archive"), "id"), []int64{1, 2, 3})
	})
}

func TestADroppedTableIsRegisteredAgain(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		where := l.readings("readings").MetadataLocation()

		l.must(l.catalog.DropTable(l.ctx, l.name("readings")))
		_, err := l.catalog.LoadTable(l.ctx, l.name("readings"))
		refused(l, err, "does not exist")

		l.table(l.catalog.RegisterTable(l.ctx, l.name("restored"), where))
		equal(l, l.column(l.load("restored"), "id"), []int64{1, 2, 3})
	})
}

func TestAPurgedTableIsGone(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		l.readings("readings")

		l.must(l.catalog.PurgeTable(l.ctx, l.name("readings")))

		equal(l, len(l.tables()), 0)
		refused(l, l.catalog.PurgeTable(l.ctx, l.name("readings")), "does not exist")
	})
}

func TestAViewIsMadeReadAndDropped(t *testing.T) {
	inEachWarehouse(t, func(l *lake) {
		query := "SELECT place FROM readings"
		version, err := view.NewVersionFromSQL(1, 0, query, table.Identifier{l.namespace})
		l.check(err)
		places := iceberg.NewSchema(0, iceberg.NestedField{ID: 1, Name: "place", Type: iceberg.PrimitiveTypes.String})
		_, err = l.catalog.CreateView(l.ctx, l.name("places"), version, places)
		l.must(err)

		loaded, err := l.catalog.LoadView(l.ctx, l.name("places"))
		l.must(err)
		equal(l, loaded.CurrentVersion().Representations[0].Sql, query)
		_, err = l.catalog.RenameView(l.ctx, l.name("places"), l.name("sites"))
		l.must(err)
		l.must(l.catalog.DropView(l.ctx, l.name("sites")))
		exists, err := l.catalog.CheckViewExists(l.ctx, l.name("sites"))
		l.must(err)
		equal(l, exists, false)
	})
}
