//! The whole state of a catalog, copied from one database to another: checked in the end, and taken up again where a
//! copy was cut off.

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::store::StoreError;

mod schema;

pub use schema::{Column, Kind, Order, TABLES, Table};

/// Rows that are written in one transaction. With the widest table it stays below what a statement may bind.
const BATCH: usize = 1_000;

/// What a column holds, whatever the database calls its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
    Uuid(Uuid),
    /// The levels of a namespace.
    Levels(Vec<String>),
}

/// Its values in the order of the table's columns.
pub type Row = Vec<Value>;

/// A database that is read.
#[async_trait]
pub trait Source: Send {
    async fn count(&mut self, table: &Table) -> Result<u64, StoreError>;

    /// In the table's order, without the first `skip`.
    fn rows<'a>(&'a mut self, table: &'a Table, skip: u64) -> BoxStream<'a, Result<Row, StoreError>>;
}

/// A database that is written, and read again to be compared. Nothing else uses it meanwhile.
#[async_trait]
pub trait Target: Source {
    /// Whether a copy was begun here that has not ended.
    async fn is_begun(&mut self) -> Result<bool, StoreError>;

    /// From now on nothing is served from it until the copy has ended.
    async fn begin(&mut self, at_ms: i64) -> Result<(), StoreError>;

    /// All of the rows, or none.
    async fn write(&mut self, table: &Table, rows: &[Row]) -> Result<(), StoreError>;

    async fn end(&mut self) -> Result<(), StoreError>;
}

/// How far a copy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub table: &'static str,
    pub step: Step,
    /// Rows of this table, those of a copy that was cut off included.
    pub done: u64,
    pub total: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Copy,
    /// Both sides are read again.
    Check,
}

/// A table that is the same on both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    pub table: &'static str,
    pub rows: u64,
    /// SHA-256 over all values, in hex.
    pub checksum: String,
}

#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("table {table} of the source cannot be read")]
    Source { table: &'static str, source: StoreError },
    #[error(
        "table {table} of the target cannot be read or written: run the same command again, and it goes on from there"
    )]
    Target { table: &'static str, source: StoreError },
    #[error("the target cannot be read or written")]
    Marker(#[source] StoreError),
    #[error("the target is no empty database: its table {table} has {rows} rows; copy into a new database")]
    NotEmpty { table: &'static str, rows: u64 },
    #[error(
        "table {} has {} rows in the source and {} in the target, or others: the source has changed since the copy was \
         begun; stop all servers, empty the target and begin again",
        source_side.table, source_side.rows, target_side.rows
    )]
    Differs { source_side: Copied, target_side: Copied },
}

/// Copies all tables and compares them; one that was cut off goes on where it stopped. Tells of its progress.
pub async fn copy(
    source: &mut dyn Source,
    target: &mut dyn Target,
    at_ms: i64,
    tell: &mut (dyn FnMut(Progress) + Send),
) -> Result<Vec<Copied>, TransferError> {
    if !target.is_begun().await.map_err(TransferError::Marker)? {
        check_empty(target).await?;
        target.begin(at_ms).await.map_err(TransferError::Marker)?;
    }
    for table in TABLES {
        copy_table(source, target, table, tell).await?;
    }
    let mut all = Vec::new();
    for table in TABLES {
        all.push(compare(source, target, table, tell).await?);
    }
    target.end().await.map_err(TransferError::Marker)?;
    Ok(all)
}

async fn check_empty(target: &mut dyn Target) -> Result<(), TransferError> {
    for table in TABLES {
        let rows = target.count(table).await.map_err(of_target(table))?;
        if rows > 0 {
            return Err(TransferError::NotEmpty { table: table.name, rows });
        }
    }
    Ok(())
}

/// Rows come in one order and in whole batches, so that their number tells which of them are there.
async fn copy_table(
    source: &mut dyn Source,
    target: &mut dyn Target,
    table: &'static Table,
    tell: &mut (dyn FnMut(Progress) + Send),
) -> Result<(), TransferError> {
    let total = source.count(table).await.map_err(of_source(table))?;
    let mut done = target.count(table).await.map_err(of_target(table))?;
    tell(Progress { table: table.name, step: Step::Copy, done, total });
    let mut batches = source.rows(table, done).try_chunks(BATCH);
    while let Some(batch) = batches.next().await {
        let batch = batch.map_err(|error| TransferError::Source { table: table.name, source: error.1 })?;
        target.write(table, &batch).await.map_err(of_target(table))?;
        done += batch.len() as u64;
        tell(Progress { table: table.name, step: Step::Copy, done, total });
    }
    Ok(())
}

async fn compare(
    source: &mut dyn Source,
    target: &mut dyn Target,
    table: &'static Table,
    tell: &mut (dyn FnMut(Progress) + Send),
) -> Result<Copied, TransferError> {
    let source_side = summed(source.rows(table, 0), table).await.map_err(of_source(table))?;
    let total = source_side.rows;
    tell(Progress { table: table.name, step: Step::Check, done: 0, total });
    let target_side = summed(target.rows(table, 0), table).await.map_err(of_target(table))?;
    tell(Progress { table: table.name, step: Step::Check, done: total, total });
    match source_side == target_side {
        true => Ok(source_side),
        false => Err(TransferError::Differs { source_side, target_side }),
    }
}

async fn summed(mut all: BoxStream<'_, Result<Row, StoreError>>, table: &'static Table) -> Result<Copied, StoreError> {
    let (mut rows, mut sum) = (0, Sha256::new());
    while let Some(row) = all.try_next().await? {
        rows += 1;
        row.iter().for_each(|value| add(&mut sum, value));
    }
    Ok(Copied { table: table.name, rows, checksum: hex::encode(sum.finalize()) })
}

/// Each value with its kind and its length, so that no two rows look alike.
fn add(sum: &mut Sha256, value: &Value) {
    let mut part = |kind: u8, bytes: &[u8]| {
        sum.update([kind]);
        sum.update((bytes.len() as u64).to_be_bytes());
        sum.update(bytes);
    };
    match value {
        Value::Null => part(0, &[]),
        Value::Bool(bool) => part(1, &[u8::from(*bool)]),
        Value::Int(int) => part(2, &int.to_be_bytes()),
        Value::Text(text) => part(3, text.as_bytes()),
        Value::Bytes(bytes) => part(4, bytes),
        Value::Uuid(uuid) => part(5, uuid.as_bytes()),
        Value::Levels(levels) => {
            part(6, &(levels.len() as u64).to_be_bytes());
            levels.iter().for_each(|level| part(3, level.as_bytes()));
        }
    }
}

fn of_source(table: &'static Table) -> impl Fn(StoreError) -> TransferError {
    |source| TransferError::Source { table: table.name, source }
}

fn of_target(table: &'static Table) -> impl Fn(StoreError) -> TransferError {
    |source| TransferError::Target { table: table.name, source }
}

#[cfg(test)]
mod tests;
