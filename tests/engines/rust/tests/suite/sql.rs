//! DataFusion's SQL on the catalog.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::prelude::SessionContext;
use iceberg_datafusion::IcebergCatalogProvider;

use crate::lake::{Lake, Outcome, whole_numbers};
use crate::readings::EVENING;

/// A session that knows what the catalog held when it began, under the name `frazil`.
struct Session<'a> {
    lake: &'a Lake,
    context: SessionContext,
}

impl<'a> Session<'a> {
    async fn begin(lake: &'a Lake) -> Outcome<Self> {
        let context = SessionContext::new();
        context.register_catalog("frazil", Arc::new(IcebergCatalogProvider::try_new(lake.catalog.clone()).await?));
        Ok(Self { lake, context })
    }

    /// Runs a statement, in which `{}` stands for the namespace.
    async fn sql(&self, statement: &str) -> Outcome<Vec<RecordBatch>> {
        let statement = statement.replace("{}", &format!("frazil.{}", self.lake.namespace.as_ref()[0]));
        let rows = async { self.context.sql(&statement).await?.collect().await };
        Ok(self.lake.done(rows.await)?)
    }

    async fn numbers(&self, query: &str) -> Outcome<Vec<i64>> {
        Ok(whole_numbers(&self.sql(query).await?))
    }
}

// The provider makes and drops tables on a thread of the runtime's own while it holds another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_is_created_filled_read_and_dropped() -> Outcome {
    for lake in Lake::in_each_warehouse().await? {
        let session = Session::begin(&lake).await?;
        session.sql("CREATE TABLE {}.readings (id BIGINT NOT NULL, place VARCHAR, flow DOUBLE)").await?;
        session.sql("INSERT INTO {}.readings VALUES (1, 'sound', 0.5), (2, 'sound', 0.7), (3, 'delta', 1.5)").await?;
        session.sql("INSERT INTO {}.readings SELECT id + 3, place, flow FROM {}.readings WHERE id < 3").await?;

        assert_eq!(session.numbers("SELECT id FROM {}.readings ORDER BY id").await?, [1, 2, 3, 4, 5]);
        let counts = "SELECT count(*) FROM {}.readings GROUP BY place ORDER BY place";
        assert_eq!(session.numbers(counts).await?, [1, 4]);
        assert_eq!(session.numbers("SELECT id FROM {}.readings WHERE flow > 1 AND place = 'delta'").await?, [3]);
        assert_eq!(lake.ids(&lake.load("readings").await?, None).await?, [1, 2, 3, 4, 5]);

        session.sql("DROP TABLE {}.readings").await?;
        assert!(lake.tables().await?.is_empty());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_partitioned_table_is_written_by_both_and_read_by_both() -> Outcome {
    for lake in Lake::in_each_warehouse().await? {
        lake.readings("readings").await?;
        let session = Session::begin(&lake).await?;
        session.sql("INSERT INTO {}.readings VALUES (5, 'lake', 0.1), (6, 'sound', 0.2)").await?;
        lake.append(&lake.load("readings").await?, &EVENING).await?;

        assert_eq!(session.numbers("SELECT id FROM {}.readings ORDER BY id").await?, [1, 2, 3, 4, 5, 6]);
        assert_eq!(lake.ids(&lake.load("readings").await?, None).await?, [1, 2, 3, 4, 5, 6]);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_are_joined_and_their_history_is_queried() -> Outcome {
    for lake in Lake::in_each_warehouse().await? {
        let readings = lake.readings("readings").await?;
        lake.append(&readings, &EVENING).await?;
        let session = Session::begin(&lake).await?;
        session.sql("CREATE TABLE {}.places (name VARCHAR, basin VARCHAR)").await?;
        session.sql("INSERT INTO {}.places VALUES ('sound', 'west'), ('delta', 'east')").await?;

        let west =
            "SELECT r.id FROM {}.readings r JOIN {}.places p ON r.place = p.name WHERE p.basin = 'west' ORDER BY 1";
        assert_eq!(session.numbers(west).await?, [1, 2]);
        let history = session.sql("SELECT * FROM {}.\"readings$snapshots\"").await?;
        assert_eq!(history.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
    }
    Ok(())
}

/// What docs/engines/rust.md says of DataFusion; where this fails, the page is out of date.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limits_of_the_page_hold() -> Outcome {
    for lake in Lake::in_each_warehouse().await? {
        let session = Session::begin(&lake).await?;
        lake.readings("readings").await?;
        lake.refused(session.sql("SELECT id FROM {}.readings").await, "not found");
        lake.refused(session.sql("CREATE SCHEMA {}x").await, "not supported");

        let session = Session::begin(&lake).await?;
        lake.refused(session.sql("DELETE FROM {}.readings WHERE id = 1").await, "not");
        lake.refused(session.sql("UPDATE {}.readings SET flow = 0").await, "not");
        lake.refused(session.sql("SELECT count(*) FROM {}.\"readings$snapshots\"").await, "number of fields");
    }
    Ok(())
}
