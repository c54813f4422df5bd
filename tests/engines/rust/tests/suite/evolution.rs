//! Tables that change while they hold rows.

use iceberg::spec::{FormatVersion, NullOrder, PrimitiveType, Type};
use iceberg::transaction::{AddColumn, ApplyTransactionAction, Transaction};

use crate::lake::{Lake, Outcome};
use crate::readings::EVENING;

#[tokio::test]
async fn columns_are_added_and_dropped() -> Outcome {
    for lake in Lake::in_each_warehouse().await? {
        let change = Transaction::new(&lake.readings("readings").await?);
        let depth = AddColumn::optional("depth", Type::Primitive(PrimitiveType::Int));
        let change = change.update_schema().add_column(depth).delete_column("flow").apply(change)?;
        lake.commit(change).await?;

        let changed = lake.load("readings").await?;
        let schema = changed.metadata().current_schema();
        let names: Vec<&str> = schema.as_struct().fields().iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["id", "place", "depth"]);
        assert_eq!(lake.ids(&changed, None).await?, [1, 2, 3]);
    }
    Ok(())
}

#[tokio::test]
async fn properties_are_set_and_unset() -> Outcome {
    for lake in Lake::in_each_warehouse().await? {
        let change = Transaction::new(&lake.readings("readings").await?);
        let set = change.update_table_properties();
        let set = set.set("team".to_owned(), "hydrology".to_owned()).set("unit".to_owned(), "m3/s".to_owned());
        let change = Transaction::new(&lake.commit(set.apply(change)?).await?);
        let unset = change.update_table_properties().remove("unit".to_owned());
        lake.commit(unset.apply(change)?).await?;

        let changed = lake.load("readings").await?;
        assert_eq!(changed.metadata().properties()["team"], "hydrology");
        assert!(!changed.metadata().properties().contains_key("unit"));
    }
    Ok(())
}

#[tokio::test]
async fn a_sort_order_is_replaced() -> Outcome {
    for lake in Lake::in_each_warehouse().await? {
        let change = Transaction::new(&lake.readings("readings").await?);
        let order = change.replace_sort_order().asc("place", NullOrder::First).desc("id", NullOrder::Last);
        lake.commit(order.apply(change)?).await?;

        assert_eq!(lake.load("readings").await?.metadata().default_sort_order().fields.len(), 2);
    }
    Ok(())
}

#[tokio::test]
async fn a_table_is_upgraded_to_format_3_and_its_old_rows_get_ids_too() -> Outcome {
    for lake in Lake::in_each_warehouse().await? {
        let change = Transaction::new(&lake.readings("readings").await?);
        let upgrade = change.upgrade_table_version().set_format_version(FormatVersion::V3);
        let upgraded = lake.commit(upgrade.apply(change)?).await?;
        lake.append(&upgraded, &EVENING).await?;

        let upgraded = lake.load("readings").await?;
        assert_eq!(upgraded.metadata().format_version(), FormatVersion::V3);
        assert_eq!(upgraded.metadata().next_row_id(), 4);
        assert_eq!(lake.ids(&upgraded, None).await?, [1, 2, 3, 4]);
    }
    Ok(())
}
