//! A small world to try a store in: one warehouse, one namespace, and short ways to change them.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::commits::lineage::Landed;
use crate::commits::store::{News, PointerChange, Swap, SwapOutcome, Target};
use crate::files::{Place, Storage};
use crate::idempotency::{Answer, Receipt};
use crate::ident::{
    AttemptId, NamespaceId, NamespaceIdent, PurgeId, TableIdent, TabularId, WarehouseId, WarehouseName,
};
use crate::location::Location;
use crate::namespaces::store::{NamespaceCreated, NewNamespace};
use crate::purge::{PurgeTarget, PurgeTask};
use crate::store::Store;
use crate::tabulars::{Pointer, TabularKind};
use crate::warehouses::Warehouse;

/// What a case of the suite comes to.
pub type Checked<T = ()> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// How many take part in a race.
pub const RACERS: usize = 20;

pub const AT_MS: i64 = 1_700_000_000_000;

pub struct World<'a> {
    pub store: &'a dyn Store,
    pub warehouse: WarehouseId,
}

impl<'a> World<'a> {
    /// With the empty namespace `ns`.
    pub async fn new(store: &'a dyn Store) -> Checked<Self> {
        let world = Self::bare(store, "w").await?;
        world.namespace(&["ns"]).await?;
        Ok(world)
    }

    /// An empty warehouse of that name.
    pub async fn bare(store: &'a dyn Store, name: &str) -> Checked<Self> {
        let warehouse = warehouse(name)?;
        store.create_warehouse(&warehouse, AT_MS).await?;
        Ok(Self { store, warehouse: warehouse.id })
    }

    pub fn new_namespace(&self, levels: &[&str]) -> Checked<NewNamespace> {
        Ok(NewNamespace {
            id: NamespaceId(Uuid::now_v7()),
            warehouse: self.warehouse,
            ident: namespace(levels)?,
            properties: BTreeMap::new(),
            at_ms: AT_MS,
        })
    }

    pub async fn namespace(&self, levels: &[&str]) -> Checked<NamespaceIdent> {
        let new = self.new_namespace(levels)?;
        let created = self.store.create_namespace(&new, None).await?;
        assert_eq!(created, NamespaceCreated::Created);
        Ok(new.ident)
    }

    pub fn swap(&self, changes: Vec<PointerChange>) -> Swap {
        Swap {
            attempt: AttemptId(Uuid::now_v7()),
            warehouse: self.warehouse,
            changes,
            receipts: Vec::new(),
            purges: Vec::new(),
            adopts: false,
            log: Vec::new(),
            events: Vec::new(),
            at_ms: AT_MS,
        }
    }

    pub async fn apply(&self, change: PointerChange) -> Checked<SwapOutcome> {
        Ok(self.store.swap(&self.swap(vec![change])).await?)
    }

    /// Applies the change, which must be possible.
    pub async fn must(&self, change: PointerChange) -> Checked {
        assert_eq!(self.apply(change).await?, SwapOutcome::Applied);
        Ok(())
    }

    /// Makes the table `ns.<name>` at a place of its own.
    pub async fn table(&self, name: &str) -> Checked<Pointer> {
        self.must(create(name)?).await?;
        self.pointer(name).await
    }

    pub async fn view(&self, name: &str) -> Checked<Pointer> {
        self.must(of_kind(create(name)?, TabularKind::View)).await?;
        self.pointer(name).await
    }

    /// That of `ns.<name>`, which must be there.
    pub async fn pointer(&self, name: &str) -> Checked<Pointer> {
        let found = self.find(name).await?;
        Ok(found.ok_or_else(|| format!("ns.{name} is missing"))?)
    }

    pub async fn find(&self, name: &str) -> Checked<Option<Pointer>> {
        Ok(self.store.pointer(self.warehouse, &ident(name)?).await?)
    }

    pub fn receipt(&self, answer: Answer) -> Receipt {
        Receipt { warehouse: self.warehouse, key: Uuid::now_v7(), binding: [7; 32], answer, at_ms: AT_MS }
    }

    pub async fn is_kept(&self, receipt: &Receipt) -> Checked<bool> {
        let kept = self.store.receipt(receipt.warehouse, receipt.key).await?;
        Ok(kept.as_ref() == Some(receipt))
    }

    pub fn purge(&self, not_before_ms: i64) -> PurgeTask {
        PurgeTask {
            id: PurgeId(Uuid::now_v7()),
            warehouse: self.warehouse,
            target: PurgeTarget::File { location: "file:///w/old.json".into() },
            not_before_ms,
        }
    }
}

pub fn warehouse(name: &str) -> Checked<Warehouse> {
    let root = Location::parse(&format!("file:///{name}"))?;
    let place = Place { root, allowed: Vec::new(), storage: Storage::default() };
    Ok(Warehouse::new(WarehouseId(Uuid::now_v7()), WarehouseName::parse(name)?, place))
}

pub fn namespace(levels: &[&str]) -> Checked<NamespaceIdent> {
    Ok(NamespaceIdent::new(levels.iter().map(|&level| level.to_owned()).collect())?)
}

/// The name of a table or view in namespace `ns`.
pub fn ident(name: &str) -> Checked<TableIdent> {
    Ok(TableIdent::new(namespace(&["ns"])?, name))
}

/// A new table `ns.<name>` with a UUID and a place of its own.
pub fn create(name: &str) -> Checked<PointerChange> {
    let uuid = Uuid::now_v7();
    create_as(name, uuid, &format!("file:///w/{uuid}"))
}

pub fn create_at(name: &str, location: &str) -> Checked<PointerChange> {
    create_as(name, Uuid::now_v7(), location)
}

pub fn create_as(name: &str, uuid: Uuid, location: &str) -> Checked<PointerChange> {
    Ok(PointerChange::Create {
        id: TabularId(Uuid::now_v7()),
        ident: ident(name)?,
        kind: TabularKind::Table,
        target: Target {
            uuid,
            location: location.to_owned(),
            metadata_location: format!("{location}/metadata/0.json"),
        },
        news: News::default(),
    })
}

pub fn of_kind(change: PointerChange, wanted: TabularKind) -> PointerChange {
    match change {
        PointerChange::Create { id, ident, target, news, .. } => {
            PointerChange::Create { id, ident, kind: wanted, target, news }
        }
        other => other,
    }
}

/// The same change, bringing these snapshots.
pub fn with_lineage(change: PointerChange, snapshots: &[i64]) -> PointerChange {
    with_news(change, News { lineage: snapshots.iter().copied().map(landed).collect(), ..News::default() })
}

/// The same change, bringing this news.
pub fn with_news(mut change: PointerChange, brought: News) -> PointerChange {
    if let PointerChange::Create { news, .. } | PointerChange::Move { news, .. } = &mut change {
        *news = brought;
    }
    change
}

pub fn landed(snapshot_id: i64) -> Landed {
    let parent_id = Some(snapshot_id.wrapping_sub(1));
    Landed { ref_name: Some("main".into()), ..Landed::bare(snapshot_id, parent_id, 1, AT_MS) }
}

/// To the next metadata file of the same table.
pub fn step(from: &Pointer) -> PointerChange {
    let target = Target {
        uuid: from.uuid,
        location: from.location.clone(),
        metadata_location: format!("{}/metadata/{}-{}.json", from.location, from.version, Uuid::now_v7()),
    };
    PointerChange::Move { from: from.clone(), target, news: News::default() }
}

/// To another document: its UUID, its location.
pub fn replace(from: &Pointer, uuid: Uuid, location: &str) -> PointerChange {
    PointerChange::Move {
        from: from.clone(),
        target: Target {
            uuid,
            location: location.to_owned(),
            metadata_location: format!("{location}/metadata/1.json"),
        },
        news: News::default(),
    }
}

pub fn drop_of(from: &Pointer) -> PointerChange {
    PointerChange::Drop { from: from.clone() }
}

pub fn rename(from: &Pointer, to: TableIdent) -> PointerChange {
    PointerChange::Rename { from: from.clone(), to }
}
