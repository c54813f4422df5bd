// Package lake drives iceberg-go against a running Frazil, in each warehouse that FRAZIL_WAREHOUSES names.
package lake

import (
	"context"
	"crypto/rand"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/rest"
	_ "github.com/apache/iceberg-go/io/gocloud/s3"
	"github.com/apache/iceberg-go/table"
)

var readings = iceberg.NewSchema(0,
	iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.Int64, Required: true},
	iceberg.NestedField{ID: 2, Name: "place", Type: iceberg.PrimitiveTypes.String},
	iceberg.NestedField{ID: 3, Name: "flow", Type: iceberg.PrimitiveTypes.Float64},
)

const (
	morning = `[{"id":1,"place":"sound","flow":0.5},{"id":2,"place":"sound","flow":0.7},{"id":3,"place":"delta","flow":1.5}]`
	evening = `[{"id":4,"place":"delta","flow":2.5}]`
	night   = `[{"id":5,"place":"lake","flow":0.1}]`
)

// A lake is a client of one warehouse, and a namespace in it that only one test knows.
type lake struct {
	*testing.T
	ctx       context.Context
	catalog   *rest.Catalog
	scheme    string
	namespace string
}

// inEachWarehouse runs the test once for every warehouse of the run.
func inEachWarehouse(t *testing.T, test func(*lake)) {
	for _, warehouse := range warehouses() {
		t.Run(scheme(warehouse), func(t *testing.T) {
			l := &lake{T: t, ctx: t.Context(), scheme: scheme(warehouse), namespace: "n" + strings.ToLower(rand.Text()[:12])}
			l.catalog = l.connect(warehouse)
			l.must(l.catalog.CreateNamespace(l.ctx, table.Identifier{l.namespace}, nil))
			test(l)
		})
	}
}

func warehouses() []string {
	return strings.Split(os.Getenv("FRAZIL_WAREHOUSES"), ",")
}

// scheme says where a warehouse keeps its files: `default` in local files, every other one on S3.
func scheme(warehouse string) string {
	if warehouse == "default" {
		return "file"
	}
	return "s3"
}

// connect gives the client nothing but the keys of the store: where it is, Frazil says.
func (l *lake) connect(warehouse string) *rest.Catalog {
	keys := iceberg.Properties{}
	if l.scheme == "s3" {
		keys["s3.access-key-id"] = os.Getenv("S3_ACCESS_KEY_ID")
		keys["s3.secret-access-key"] = os.Getenv("S3_SECRET_ACCESS_KEY")
	}
	c, err := rest.NewCatalog(l.ctx, "frazil", os.Getenv("FRAZIL_URI"),
		rest.WithWarehouseLocation(warehouse), rest.WithAdditionalProps(keys))
	l.must(err)
	return c
}

// check ends the test on an error.
func (l *lake) check(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// must is check for what asks the catalog or the store, which is counted.
func (l *lake) must(err error) {
	l.Helper()
	l.check(err)
	report.ran(l.scheme)
}

// table is must for all that gives a table.
func (l *lake) table(t *table.Table, err error) *table.Table {
	l.Helper()
	l.must(err)
	return t
}

func (l *lake) name(last string) table.Identifier {
	return catalog.ToIdentifier(l.namespace, last)
}

// readings makes a table of three rows, partitioned by place.
func (l *lake) readings(last string) *table.Table {
	l.Helper()
	spec := iceberg.NewPartitionSpec(iceberg.PartitionField{
		SourceIDs: []int{2}, FieldID: 1000, Name: "place", Transform: iceberg.IdentityTransform{},
	})
	made := l.table(l.catalog.CreateTable(l.ctx, l.name(last), readings, catalog.WithPartitionSpec(&spec)))
	return l.append(made, morning)
}

// append writes rows given as JSON, and returns the table as the commit left it.
func (l *lake) append(t *table.Table, rows string) *table.Table {
	l.Helper()
	return l.table(t.AppendTable(l.ctx, l.rows(t.Schema(), rows), 1024, nil))
}

func (l *lake) rows(schema *iceberg.Schema, rows string) arrow.Table {
	l.Helper()
	arrowSchema, err := table.SchemaToArrowSchema(schema, nil, true, false)
	l.check(err)
	made, err := array.TableFromJSON(memory.DefaultAllocator, arrowSchema, []string{rows})
	l.check(err)
	return made
}

// load reads the table from the catalog anew.
func (l *lake) load(last string) *table.Table {
	l.Helper()
	return l.table(l.catalog.LoadTable(l.ctx, l.name(last)))
}

// commit ends a transaction.
func (l *lake) commit(transaction *table.Transaction) *table.Table {
	l.Helper()
	return l.table(transaction.Commit(l.ctx))
}

// column reads one column of whole numbers, sorted.
func (l *lake) column(t *table.Table, name string, options ...table.ScanOption) []int64 {
	l.Helper()
	options = append(options, table.WithSelectedFields(name))
	read, err := t.Scan(options...).ToArrowTable(l.ctx)
	l.must(err)
	defer read.Release()
	values := []int64{}
	for _, chunk := range read.Column(0).Data().Chunks() {
		values = append(values, chunk.(*array.Int64).Int64Values()...)
	}
	slices.Sort(values)
	return values
}

func equal[T any](l *lake, got, want T) {
	l.Helper()
	if !reflect.DeepEqual(got, want) {
		l.Fatalf("got %v, wanted %v", got, want)
	}
}

func refused(l *lake, err error, words string) {
	l.Helper()
	if err == nil || !strings.Contains(strings.ToLower(err.Error()), words) {
		l.Fatalf("got %v, wanted a refusal that says %q", err, words)
	}
	report.ran(l.scheme)
}

// tables lists what the test's namespace holds, by last names.
func (l *lake) tables() []string {
	l.Helper()
	names := map[string]bool{}
	for name, err := range l.catalog.ListTables(l.ctx, table.Identifier{l.namespace}) {
		l.check(err)
		names[name[len(name)-1]] = true
	}
	report.ran(l.scheme)
	return slices.Sorted(maps.Keys(names))
}
