//! Namespaces and tables: made, listed, renamed, dropped.

use std::collections::HashMap;

use iceberg::spec::{NullOrder, SortDirection, SortField, SortOrder, Transform, UnboundPartitionSpec};
use iceberg::{NamespaceIdent, TableCreation};

use crate::lake::{Lake, Outcome};
use crate::readings;

#[tokio::test]
async fn namespaces_are_made_listed_and_dropped() -> Outcome {
    for lake in Lake::in_each_warehouse().await? {
        let rivers = child(&lake, "rivers")?;
        let properties = HashMap::from([("team".to_owned(), "hydrology".to_owned())]);
        lake.done(lake.catalog.create_namespace(&rivers, properties.clone()).await)?;
        lake.refused(lake.catalog.create_namespace(&rivers, properties).await, "already exists");

        let found = lake.done(lake.catalog.get_namespace(&rivers).await)?;
        assert_eq!(found.properties()["team"], "hydrology");
        assert_eq!(lake.done(lake.catalog.list_namespaces(Some(&lake.namespace)).await)?, [rivers.clone()]);
        lake.refused(lake.catalog.drop_namespace(&lake.namespace).await, "not empty");

        lake.done(lake.catalog.drop_namespace(&rivers).await)?;
        assert!(!lake.done(lake.catalog.namespace_exists(&rivers).await)?);
    }
    Ok(())
}

fn child(lake: &Lake, last: &str) -> iceberg::Result<NamespaceIdent> {
    NamespaceIdent::from_strs([lake.namespace.as_ref()[0].as_str(), last])
}

#[tokio::test]
async fn a_table_is_what_it_was_made_as() -> Outcome {
    for lake in Lake::in_each_warehouse().await? {
        let spec = UnboundPartitionSpec::builder()
            .add_partition_field(1, "shard", Transform::Bucket(4))?
            .add_partition_field(2, "site", Transform::Truncate(2))?
            .build();
        let order = SortField::builder()
            .source_id(3)
            .transform(Transform::Identity)
            .direction(SortDirection::Descending)
            .null_order(NullOrder::Last)
            .build();
        let creation = TableCreation::builder()
            .name("made".to_owned())
            .schema(readings::schema()?)
            .partition_spec(spec)
            .sort_order(SortOrder::builder().with_sort_field(order).build_unbound()?)
            .properties([("team".to_owned(), "hydrology".to_owned())])
            .build();
        lake.done(lake.catalog.create_table(&lake.namespace, creation).await)?;

        let made = lake.load("made").await?;
        let metadata = made.metadata();
        assert_eq!(metadata.current_schema().as_struct(), readings::schema()?.as_struct());
        assert_eq!(metadata.default_partition_spec().fields().len(), 2);
        assert_eq!(metadata.default_sort_order().fields.len(), 1);
        assert_eq!(metadata.properties()["team"], "hydrology");
        assert!(metadata.current_snapshot().is_none());
        lake.refused(lake.catalog.create_table(&lake.namespace, readings::creation("made")?).await, "already exists");
    }
    Ok(())
}

#[tokio::test]
async fn a_renamed_table_keeps_its_rows() -> Outcome {
    for lake in Lake::in_each_warehouse().await? {
        lake.readings("readings").await?;

        lake.done(lake.catalog.rename_table(&lake.name("readings"), &lake.name("archive")).await)?;

        assert_eq!(lake.tables().await?, ["archive"]);
        assert_eq!(lake.ids(&lake.load("archive").await?, None).await?, [1, 2, 3]);
    }
    Ok(())
}

#[tokio::test]
async fn a_dropped_table_is_registered_again() -> Outcome {
    for lake in Lake::in_each_warehouse().await? {
        let made = lake.readings("readings").await?;
        let last = made.metadata_location_result()?.to_owned();

        lake.done(lake.catalog.drop_table(&lake.name("readings")).await)?;
        assert!(!lake.done(lake.catalog.table_exists(&lake.name("readings")).await)?);

        let restored = lake.done(lake.catalog.register_table(&lake.name("restored"), last).await)?;
        assert_eq!(lake.ids(&restored, None).await?, [1, 2, 3]);
    }
    Ok(())
}

#[tokio::test]
async fn a_purged_table_is_gone() -> Outcome {
    for lake in Lake::in_each_warehouse().await? {
        lake.readings("readings").await?;

        lake.done(lake.catalog.purge_table(&lake.name("readings")).await)?;

        assert!(lake.tables().await?.is_empty());
        lake.refused(lake.catalog.load_table(&lake.name("readings")).await, "does not exist");
    }
    Ok(())
}
