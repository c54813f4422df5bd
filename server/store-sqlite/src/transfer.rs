//! All tables read and written as a copy of the whole database needs it.

use std::fs::File;
use std::path::Path;

use async_trait::async_trait;
use catalog::store::StoreError;
use catalog::transfer::{Kind, Order, Row, Source, Table, Target, Value};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, QueryBuilder, Row as _, Sqlite};
use uuid::Uuid;

use crate::columns::{from_json, json};
use crate::error::{OpenError, aborted, beginning, in_doubt, in_transaction};
use crate::{BEGIN, MIGRATOR, is_half_copied, lock, options, refused};

/// The file as copies are read from it, or written. No server can open it meanwhile.
#[derive(Debug)]
pub struct SqliteTransfer {
    conn: SqliteConnection,
    _lock: File,
}

impl SqliteTransfer {
    /// To be read; its schema is brought up to date.
    pub async fn source(path: &Path) -> Result<Self, OpenError> {
        if !path.exists() {
            return Err(OpenError::Missing { path: path.to_path_buf() });
        }
        let mut source = Self::target(path).await?;
        match is_half_copied(&mut source.conn).await.map_err(OpenError::Open)? {
            true => Err(OpenError::HalfCopied),
            false => Ok(source),
        }
    }

    /// To be written; made where there is none.
    pub async fn target(path: &Path) -> Result<Self, OpenError> {
        let lock = lock(path)?;
        let mut conn = options(path).connect().await.map_err(OpenError::Open)?;
        MIGRATOR.run(&mut conn).await.map_err(refused)?;
        Ok(Self { conn, _lock: lock })
    }
}

#[async_trait]
impl Source for SqliteTransfer {
    async fn count(&mut self, table: &Table) -> Result<u64, StoreError> {
        let sql = format!("SELECT count(*) FROM {}", table.name);
        let rows: i64 = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut self.conn).await.map_err(aborted)?;
        Ok(rows.unsigned_abs())
    }

    fn rows<'a>(&'a mut self, table: &'a Table, skip: u64) -> BoxStream<'a, Result<Row, StoreError>> {
        let sql = format!(
            "SELECT {} FROM {} ORDER BY {} LIMIT -1 OFFSET {skip}",
            table.column_names(),
            table.name,
            order(table)
        );
        let rows = sqlx::query(AssertSqlSafe(sql)).fetch(&mut self.conn).map_err(aborted);
        rows.and_then(move |row| async move { read(&row, table) }).boxed()
    }
}

#[async_trait]
impl Target for SqliteTransfer {
    async fn is_begun(&mut self) -> Result<bool, StoreError> {
        is_half_copied(&mut self.conn).await.map_err(aborted)
    }

    async fn begin(&mut self, at_ms: i64) -> Result<(), StoreError> {
        let begun = sqlx::query!("INSERT INTO copy_under_way (begun_at_ms) VALUES ($1)", at_ms);
        begun.execute(&mut self.conn).await.map(drop).map_err(in_doubt)
    }

    async fn write(&mut self, table: &Table, rows: &[Row]) -> Result<(), StoreError> {
        let mut insert = QueryBuilder::<Sqlite>::new(format!("INSERT INTO {} ({}) ", table.name, table.column_names()));
        insert.push_values(rows, |mut values, row| {
            for value in row {
                match value {
                    Value::Null => values.push("NULL"),
                    Value::Bool(bool) => values.push_bind(*bool),
                    Value::Int(int) => values.push_bind(*int),
                    Value::Text(text) => values.push_bind(text.clone()),
                    Value::Bytes(bytes) => values.push_bind(bytes.clone()),
                    Value::Uuid(uuid) => values.push_bind(*uuid),
                    Value::Levels(levels) => values.push_bind(json(levels)),
                };
            }
        });
        let mut tx = self.conn.begin_with(BEGIN).await.map_err(beginning)?;
        insert.build().persistent(false).execute(&mut *tx).await.map_err(in_transaction)?;
        tx.commit().await.map_err(in_doubt)
    }

    async fn end(&mut self) -> Result<(), StoreError> {
        sqlx::query!("DELETE FROM copy_under_way").execute(&mut self.conn).await.map(drop).map_err(in_doubt)
    }
}

fn order(table: &Table) -> String {
    match table.order {
        Order::By(columns) => columns.join(", "),
        Order::Depth => "json_array_length(parts), id".to_owned(),
        Order::Committed => "serial".to_owned(),
    }
}

fn read(row: &SqliteRow, table: &Table) -> Result<Row, StoreError> {
    let values = table.columns.iter().enumerate().map(|(n, column)| {
        let value = match column.kind {
            Kind::Bool => row.try_get::<Option<bool>, _>(n).map_err(aborted)?.map(Value::Bool),
            Kind::Int => row.try_get::<Option<i64>, _>(n).map_err(aborted)?.map(Value::Int),
            Kind::Text => row.try_get::<Option<String>, _>(n).map_err(aborted)?.map(Value::Text),
            Kind::Bytes => row.try_get::<Option<Vec<u8>>, _>(n).map_err(aborted)?.map(Value::Bytes),
            Kind::Uuid => row.try_get::<Option<Uuid>, _>(n).map_err(aborted)?.map(Value::Uuid),
            Kind::Levels => {
                let parts: Option<String> = row.try_get(n).map_err(aborted)?;
                parts.map(|parts| from_json(&parts).map(Value::Levels)).transpose()?
            }
        };
        Ok(value.unwrap_or(Value::Null))
    });
    values.collect()
}
