//! All tables read and written as a copy of the whole database needs it.

use async_trait::async_trait;
use catalog::store::StoreError;
use catalog::transfer::{Kind, Order, Row, Source, Table, Target, Value};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection, Executor, Postgres, QueryBuilder, Row as _};

use crate::error::{OpenError, aborted, before_commit, committing, unreachable};
use crate::migrate::{self, Schema};
use crate::sessions::{APPLICATION_NAME, primary};
use crate::{BEGIN, pooler};

/// A session that copies are read with, or written.
#[derive(Debug)]
pub struct PostgresTransfer {
    conn: PgConnection,
}

/// How a session of a copy is named, so that it is not taken for a server's.
const COPY_NAME: &str = "frazil store copy";

impl PostgresTransfer {
    /// To be read: as the database is at this moment.
    pub async fn source(url: &str) -> Result<Self, OpenError> {
        let mut conn = begun(url).await?;
        if migrate::schema(&mut conn).await? != Schema::Current {
            return Err(OpenError::SchemaTooOld);
        }
        if migrate::is_half_copied(&mut conn).await.map_err(unreachable)? {
            return Err(OpenError::HalfCopied);
        }
        conn.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await.map_err(unreachable)?;
        Ok(Self { conn })
    }

    /// To be written; its schema is brought up to date.
    pub async fn target(url: &str) -> Result<Self, OpenError> {
        let options = primary(url).await?.application_name(COPY_NAME);
        pooler::check_statements(&options).await?;
        migrate::migrate(&options).await?;
        Ok(Self { conn: begun(url).await? })
    }
}

/// A session without time-outs in a database that no server uses.
async fn begun(url: &str) -> Result<PgConnection, OpenError> {
    let options = primary(url).await?.application_name(COPY_NAME);
    if pooler::shares_sessions(&options).await? {
        return Err(OpenError::MigratesThroughPooler);
    }
    let unhurried = [("statement_timeout", "0"), ("idle_in_transaction_session_timeout", "0")];
    let mut conn = pooler::connect(&options.options(unhurried)).await?;
    let servers = sqlx::query_scalar!(
        r#"SELECT count(*) AS "servers!" FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = $1"#,
        APPLICATION_NAME
    );
    match servers.fetch_one(&mut conn).await.map_err(unreachable)? {
        0 => Ok(conn),
        sessions => Err(OpenError::InUse { sessions }),
    }
}

#[async_trait]
impl Source for PostgresTransfer {
    async fn count(&mut self, table: &Table) -> Result<u64, StoreError> {
        let sql = format!("SELECT count(*) FROM {}", table.name);
        let rows: i64 = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut self.conn).await.map_err(aborted)?;
        Ok(rows.unsigned_abs())
    }

    fn rows<'a>(&'a mut self, table: &'a Table, skip: u64) -> BoxStream<'a, Result<Row, StoreError>> {
        let sql =
            format!("SELECT {} FROM {} ORDER BY {} OFFSET {skip}", table.column_names(), table.name, order(table));
        let rows = sqlx::query(AssertSqlSafe(sql)).fetch(&mut self.conn).map_err(aborted);
        rows.and_then(move |row| async move { read(&row, table).map_err(aborted) }).boxed()
    }
}

#[async_trait]
impl Target for PostgresTransfer {
    async fn is_begun(&mut self) -> Result<bool, StoreError> {
        migrate::is_half_copied(&mut self.conn).await.map_err(aborted)
    }

    async fn begin(&mut self, at_ms: i64) -> Result<(), StoreError> {
        let begun = sqlx::query!("INSERT INTO copy_under_way (begun_at_ms) VALUES ($1)", at_ms);
        begun.execute(&mut self.conn).await.map(drop).map_err(committing)
    }

    async fn write(&mut self, table: &Table, rows: &[Row]) -> Result<(), StoreError> {
        let mut insert =
            QueryBuilder::<Postgres>::new(format!("INSERT INTO {} ({}) ", table.name, table.column_names()));
        insert.push_values(rows, |mut values, row| {
            for value in row {
                match value {
                    Value::Null => values.push("NULL"),
                    Value::Bool(bool) => values.push_bind(*bool),
                    Value::Int(int) => values.push_bind(*int),
                    Value::Text(text) => values.push_bind(text),
                    Value::Bytes(bytes) => values.push_bind(bytes),
                    Value::Uuid(uuid) => values.push_bind(*uuid),
                    Value::Levels(levels) => values.push_bind(levels),
                };
            }
        });
        let mut tx = self.conn.begin_with(BEGIN).await.map_err(aborted)?;
        // Each statement is another one where the last batch is smaller: none is worth being kept.
        insert.build().persistent(false).execute(&mut *tx).await.map_err(before_commit)?;
        tx.commit().await.map_err(committing)
    }

    async fn end(&mut self) -> Result<(), StoreError> {
        sqlx::query!("DELETE FROM copy_under_way").execute(&mut self.conn).await.map_err(committing)?;
        // Without them the first queries are planned as if all tables were empty.
        self.conn.execute("ANALYZE").await.map(drop).map_err(aborted)
    }
}

fn order(table: &Table) -> String {
    match table.order {
        Order::By(columns) => columns.join(", "),
        Order::Depth => "cardinality(parts), id".to_owned(),
        Order::Committed => "xid, serial".to_owned(),
    }
}

fn read(row: &PgRow, table: &Table) -> Result<Row, sqlx::Error> {
    let values = table.columns.iter().enumerate().map(|(n, column)| {
        let value = match column.kind {
            Kind::Bool => row.try_get::<Option<bool>, _>(n)?.map(Value::Bool),
            Kind::Int => row.try_get::<Option<i64>, _>(n)?.map(Value::Int),
            Kind::Text => row.try_get::<Option<String>, _>(n)?.map(Value::Text),
            Kind::Bytes => row.try_get::<Option<Vec<u8>>, _>(n)?.map(Value::Bytes),
            Kind::Uuid => row.try_get::<Option<_>, _>(n)?.map(Value::Uuid),
            Kind::Levels => row.try_get::<Option<Vec<String>>, _>(n)?.map(Value::Levels),
        };
        Ok(value.unwrap_or(Value::Null))
    });
    values.collect()
}
