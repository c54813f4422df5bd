//! A client of one warehouse.

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::fmt::Display;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use futures::TryStreamExt;
use iceberg::expr::Predicate;
use iceberg::table::Table;
use iceberg::transaction::Transaction;
use iceberg::{Catalog, CatalogBuilder, NamespaceIdent, TableIdent};
use iceberg_catalog_rest::RestCatalogBuilder;
use iceberg_storage_opendal::OpenDalResolvingStorageFactory;

use crate::report::REPORT;

pub type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// A client of one warehouse, and a namespace in it that only one test knows.
pub struct Lake {
    pub catalog: Arc<dyn Catalog>,
    pub namespace: NamespaceIdent,
    scheme: &'static str,
}

impl Lake {
    /// One for every warehouse of the run.
    pub async fn in_each_warehouse() -> Outcome<Vec<Self>> {
        let mut lakes = Vec::new();
        for warehouse in env::var("FRAZIL_WAREHOUSES")?.split(',') {
            lakes.push(Self::in_warehouse(warehouse).await?);
        }
        Ok(lakes)
    }

    /// Gives the client nothing but the keys of the store: where it is, Frazil says. The warehouse `default` lies in
    /// local files, every other one on S3.
    async fn in_warehouse(warehouse: &str) -> Outcome<Self> {
        let scheme = if warehouse == "default" { "file" } else { "s3" };
        let mut settings = HashMap::from([
            ("uri".to_owned(), env::var("FRAZIL_URI")?),
            ("warehouse".to_owned(), warehouse.to_owned()),
        ]);
        if scheme == "s3" {
            settings.insert("s3.access-key-id".to_owned(), env::var("S3_ACCESS_KEY_ID")?);
            settings.insert("s3.secret-access-key".to_owned(), env::var("S3_SECRET_ACCESS_KEY")?);
        }
        let catalog = RestCatalogBuilder::default()
            .with_storage_factory(Arc::new(OpenDalResolvingStorageFactory::new()))
            .load("frazil", settings)
            .await?;
        let namespace = NamespaceIdent::new(format!("n{}", uuid::Uuid::new_v4().simple()));
        let lake = Self { catalog: Arc::new(catalog), namespace, scheme };
        lake.done(lake.catalog.create_namespace(&lake.namespace, HashMap::new()).await)?;
        Ok(lake)
    }

    /// Counts what came out as it must.
    pub fn done<T, E>(&self, result: Result<T, E>) -> Result<T, E> {
        if result.is_ok() {
            REPORT.ran(self.scheme);
        }
        result
    }

    /// Asserts a refusal whose message has these words.
    pub fn refused<T, E: Display>(&self, result: Result<T, E>, words: &str) {
        let told = result.err().expect("it was accepted").to_string();
        assert!(told.to_lowercase().contains(words), "on {}: {told}", self.scheme);
        REPORT.ran(self.scheme);
    }

    pub fn name(&self, last: &str) -> TableIdent {
        TableIdent::new(self.namespace.clone(), last.to_owned())
    }

    /// Reads the table from the catalog anew.
    pub async fn load(&self, last: &str) -> Outcome<Table> {
        Ok(self.done(self.catalog.load_table(&self.name(last)).await)?)
    }

    pub async fn commit(&self, transaction: Transaction) -> Outcome<Table> {
        Ok(self.done(transaction.commit(&*self.catalog).await)?)
    }

    /// The last names of the tables in the test's namespace, sorted.
    pub async fn tables(&self) -> Outcome<Vec<String>> {
        let listed = self.done(self.catalog.list_tables(&self.namespace).await)?;
        let mut names: Vec<String> = listed.into_iter().map(|table| table.name).collect();
        names.sort();
        Ok(names)
    }

    /// The ids of the rows that the table has, or had at `snapshot`, sorted.
    pub async fn ids(&self, table: &Table, snapshot: Option<i64>) -> Outcome<Vec<i64>> {
        self.read(table, snapshot, Predicate::AlwaysTrue).await
    }

    pub async fn ids_where(&self, table: &Table, filter: Predicate) -> Outcome<Vec<i64>> {
        self.read(table, None, filter).await
    }

    async fn read(&self, table: &Table, snapshot: Option<i64>, filter: Predicate) -> Outcome<Vec<i64>> {
        let mut scan = table.scan().select(["id"]).with_filter(filter);
        if let Some(snapshot) = snapshot {
            scan = scan.snapshot_id(snapshot);
        }
        let rows: Vec<RecordBatch> = self.done(scan.build()?.to_arrow().await?.try_collect().await)?;
        let mut ids = whole_numbers(&rows);
        ids.sort_unstable();
        Ok(ids)
    }
}

/// The first column of the rows.
pub fn whole_numbers(rows: &[RecordBatch]) -> Vec<i64> {
    rows.iter().flat_map(|rows| rows.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
}
