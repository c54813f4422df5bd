//! The table that most tests work on: readings of rivers, partitioned by place.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use datafusion::parquet::file::properties::WriterProperties;
use iceberg::arrow::{RecordBatchPartitionSplitter, schema_to_arrow_schema};
use iceberg::spec::{
    DataFile, DataFileFormat, NestedField, PrimitiveType, Schema, Transform, Type, UnboundPartitionSpec,
};
use iceberg::table::Table;
use iceberg::transaction::{ApplyTransactionAction, Transaction};
use iceberg::writer::base_writer::data_file_writer::DataFileWriterBuilder;
use iceberg::writer::file_writer::ParquetWriterBuilder;
use iceberg::writer::file_writer::location_generator::{DefaultFileNameGenerator, DefaultLocationGenerator};
use iceberg::writer::file_writer::rolling_writer::RollingFileWriterBuilder;
use iceberg::writer::partitioning::PartitioningWriter;
use iceberg::writer::partitioning::fanout_writer::FanoutWriter;
use iceberg::{Result, TableCreation};

use crate::lake::{Lake, Outcome};

pub type Reading = (i64, &'static str, f64);

pub const MORNING: [Reading; 3] = [(1, "sound", 0.5), (2, "sound", 0.7), (3, "delta", 1.5)];
pub const EVENING: [Reading; 1] = [(4, "delta", 2.5)];
pub const NIGHT: [Reading; 1] = [(5, "lake", 0.1)];

impl Lake {
    /// A table with the three rows of the morning.
    pub async fn readings(&self, last: &str) -> Outcome<Table> {
        let made = self.done(self.catalog.create_table(&self.namespace, creation(last)?).await)?;
        self.append(&made, &MORNING).await
    }

    /// Writes rows, and returns the table as the commit left it.
    pub async fn append(&self, table: &Table, rows: &[Reading]) -> Outcome<Table> {
        let transaction = Transaction::new(table);
        let append = transaction.fast_append().add_data_files(written(table, rows).await?);
        self.commit(append.apply(transaction)?).await
    }
}

pub fn creation(last: &str) -> Result<TableCreation> {
    let spec = UnboundPartitionSpec::builder().add_partition_field(2, "place", Transform::Identity)?.build();
    Ok(TableCreation::builder().name(last.to_owned()).schema(schema()?).partition_spec(spec).build())
}

pub fn schema() -> Result<Schema> {
    let fields = [
        NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long)),
        NestedField::optional(2, "place", Type::Primitive(PrimitiveType::String)),
        NestedField::optional(3, "flow", Type::Primitive(PrimitiveType::Double)),
    ];
    Schema::builder().with_fields(fields.map(Arc::new)).build()
}

/// Data files with the rows, which no snapshot knows yet.
pub async fn written(table: &Table, rows: &[Reading]) -> Result<Vec<DataFile>> {
    let metadata = table.metadata();
    let schema = metadata.current_schema();
    let files = RollingFileWriterBuilder::new_with_default_file_size(
        ParquetWriterBuilder::new(WriterProperties::default(), schema.clone()),
        table.file_io().clone(),
        DefaultLocationGenerator::new(metadata)?,
        DefaultFileNameGenerator::new(uuid::Uuid::new_v4().to_string(), None, DataFileFormat::Parquet),
    );
    let mut writer = FanoutWriter::new(DataFileWriterBuilder::new(files));
    let spec = metadata.default_partition_spec();
    let splitter = RecordBatchPartitionSplitter::try_new_with_computed_values(schema.clone(), spec.clone())?;
    for (partition, rows) in splitter.split(&batch(schema, rows)?)? {
        writer.write(partition, rows).await?;
    }
    writer.close().await
}

fn batch(schema: &Schema, rows: &[Reading]) -> Result<RecordBatch> {
    let columns: Vec<ArrayRef> = vec![
        Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()),
        Arc::new(rows.iter().map(|row| Some(row.1)).collect::<StringArray>()),
        Arc::new(rows.iter().map(|row| row.2).collect::<Float64Array>()),
    ];
    Ok(RecordBatch::try_new(Arc::new(schema_to_arrow_schema(schema)?), columns)?)
}
