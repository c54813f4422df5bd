package frazil.flink;

import org.apache.flink.table.data.RowData;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.util.Collector;
import org.apache.iceberg.DistributionMode;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.Schema;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.flink.FlinkSchemaUtil;
import org.apache.iceberg.flink.sink.dynamic.DynamicRecord;
import org.apache.iceberg.flink.sink.dynamic.DynamicTableRecordGenerator;

/**
 * Routes rows (target STRING, id BIGINT, ...) of the dynamic sink: to the namespace that `target` names, by the id's
 * parity to the table `even` or `odd`, and every third id to the branch `third` in place of main.
 */
public final class RouteByRemainder extends DynamicTableRecordGenerator {
  private transient Schema schema;

  public RouteByRemainder(RowType rowType) {
    super(rowType);
  }

  @Override
  public void generate(RowData row, Collector<DynamicRecord> out) {
    if (schema == null) {
      schema = FlinkSchemaUtil.convert(FlinkSchemaUtil.toResolvedSchema(rowType()));
    }
    long id = row.getLong(1);
    TableIdentifier table = TableIdentifier.of(row.getString(0).toString(), id % 2 == 0 ? "even" : "odd");
    String branch = id % 3 == 0 ? "third" : "main";
    out.collect(new DynamicRecord(table, branch, schema, row, PartitionSpec.unpartitioned(), DistributionMode.NONE, 1));
  }
}
