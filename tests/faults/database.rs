//! A database of a test's own, on the PostgreSQL server that the environment names.

use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use uuid::Uuid;

/// A new database; it goes with the test.
#[derive(Debug)]
pub struct Database {
    admin_url: String,
    name: String,
}

impl Database {
    /// A missing server is a failure: a test that does not run says nothing.
    pub async fn create() -> Self {
        let url = std::env::var("POSTGRES_DATABASE_URL").or_else(|_| std::env::var("DATABASE_URL"));
        Self::on(&url.expect("POSTGRES_DATABASE_URL or DATABASE_URL must name a PostgreSQL server")).await
    }

    pub async fn on(admin_url: &str) -> Self {
        let database = Self { admin_url: admin_url.to_owned(), name: format!("faults_{}", Uuid::now_v7().simple()) };
        run(&database.admin_url, &format!("CREATE DATABASE {}", database.name)).await;
        database
    }

    pub fn url(&self) -> String {
        let (server, parameters) = self.admin_url.split_once('?').unwrap_or((&self.admin_url, ""));
        let (server, _) = server.rsplit_once('/').unwrap();
        format!("{server}/{}?sslmode=disable&{parameters}", self.name)
    }

    /// Host and port, for a proxy.
    pub fn address(&self) -> String {
        address_of(&self.admin_url)
    }
}

impl Drop for Database {
    /// In a thread of its own, for a drop cannot wait.
    fn drop(&mut self) {
        let (url, drop) = (self.admin_url.clone(), format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name));
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(run(&url, &drop));
        });
        // Whether it goes or not says nothing of what was tested.
        let _ = dropping.join();
    }
}

/// The `host:port` of a URL.
pub fn address_of(url: &str) -> String {
    let authority = url.split("://").nth(1).unwrap().split(['/', '?']).next().unwrap();
    authority.rsplit('@').next().unwrap().to_owned()
}

/// The same URL, for another `host:port`.
pub fn through(url: &str, address: &str) -> String {
    url.replacen(&address_of(url), address, 1)
}

/// Runs SQL text on a connection of its own.
pub async fn run(url: &str, sql: &str) {
    try_run(url, sql).await.unwrap();
}

pub async fn try_run(url: &str, sql: &str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await?;
    connection.close().await
}

/// What a query finds.
pub async fn rows(url: &str, query: &str) -> Vec<PgRow> {
    let mut connection = PgConnection::connect(url).await.unwrap();
    sqlx::query(AssertSqlSafe(query.to_owned())).fetch_all(&mut connection).await.unwrap()
}

/// The one number that a query finds.
pub async fn number(url: &str, query: &str) -> i64 {
    use sqlx::Row;
    rows(url, query).await[0].get::<i64, _>(0)
}
