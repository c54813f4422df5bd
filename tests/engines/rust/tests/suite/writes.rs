//! Rows written by the library's own writers, and read back.

use std::collections::HashMap;

use iceberg::expr::Reference;
use iceberg::spec::Datum;
use iceberg::transaction::{ApplyTransactionAction, Transaction};

use crate::lake::{Lake, Outcome};
use crate::readings::{EVENING, NIGHT, written};

#[tokio::test]
async fn rows_are_appended_twice_and_read_back() -> Outcome {
    for lake in Lake::in_each_warehouse().await? {
        let first = lake.readings("readings").await?;
        let change = Transaction::new(&first);
        let append = change.fast_append().add_data_files(written(&first, &EVENING).await?);
        let append = append.set_snapshot_properties(HashMap::from([("batch".to_owned(), "evening".to_owned())]));
        lake.commit(append.apply(change)?).await?;

        let read = lake.load("readings").await?;
        let snapshot = read.metadata().current_snapshot().expect("rows were appended");
        assert_eq!(snapshot.summary().additional_properties["batch"], "evening");
        assert_eq!(snapshot.parent_snapshot_id(), first.metadata().current_snapshot_id());
        assert_eq!(lake.ids(&read, None).await?, [1, 2, 3, 4]);
        let delta = Reference::new("place").equal_to(Datum::string("delta"));
        assert_eq!(lake.ids_where(&read, delta).await?, [3, 4]);
    }
    Ok(())
}

#[tokio::test]
async fn the_past_is_read_by_snapshot() -> Outcome {
    for lake in Lake::in_each_warehouse().await? {
        let first = lake.readings("readings").await?;
        let second = lake.append(&first, &EVENING).await?;

        assert_eq!(lake.ids(&second, first.metadata().current_snapshot_id()).await?, [1, 2, 3]);
        assert_eq!(lake.ids(&second, None).await?, [1, 2, 3, 4]);
    }
    Ok(())
}

#[tokio::test]
async fn appends_at_once_all_land() -> Outcome {
    for lake in Lake::in_each_warehouse().await? {
        let seen = lake.readings("readings").await?;

        let (evening, night) = futures::join!(lake.append(&seen, &EVENING), lake.append(&seen, &NIGHT));
        evening?;
        night?;

        assert_eq!(lake.ids(&lake.load("readings").await?, None).await?, [1, 2, 3, 4, 5]);
    }
    Ok(())
}

#[tokio::test]
async fn old_snapshots_expire() -> Outcome {
    for lake in Lake::in_each_warehouse().await? {
        let first = lake.readings("readings").await?;
        let change = Transaction::new(&lake.append(&first, &EVENING).await?);
        let old = first.metadata().current_snapshot_id();
        lake.commit(change.expire_snapshots().expire_snapshot_ids(old).apply(change)?).await?;

        let kept = lake.load("readings").await?;
        assert_eq!(kept.metadata().snapshots().count(), 1);
        assert_eq!(lake.ids(&kept, None).await?, [1, 2, 3, 4]);
    }
    Ok(())
}
