//! What a request would make of its tables: judged against the pointers as read, not yet written.

use std::sync::Arc;

use crate::blocking;
use crate::commits::lineage::Landed;
use crate::commits::request::CommitRequest;
use crate::commits::store::{News, PointerChange, Target};
use crate::commits::{Change, Commits, sanity};
use crate::context::RequestContext;
use crate::documents::{Documents, TableDocument};
use crate::error::{Error, Result};
use crate::idempotency::Answer;
use crate::ident::{PurgeId, TabularId};
use crate::location::Location;
use crate::metadata::{self, ApplyAt, TableMetadata, TableUpdate};
use crate::namespaces::check_part;
use crate::purge::{PurgeTarget, PurgeTask};
use crate::tabulars::{Pointer, TabularKind};
use crate::warehouses::Warehouse;

/// Snapshots whose timestamp was moved, because their writer's clock was.
pub const TIMESTAMPS_MOVED_TOTAL: &str = "frazil_snapshot_timestamps_moved_total";

/// One table's part.
pub(super) enum Draft {
    /// The request changes nothing here.
    Unchanged(Pointer),
    Changed {
        change: PointerChange,
        metadata_location: String,
        document: Arc<TableDocument>,
        /// Metadata files that fell out of the log and are to be deleted.
        dropped_files: Vec<String>,
    },
}

/// All tables of a request.
pub(super) struct Drafts(Vec<Draft>);

impl Commits {
    /// Judges every table of the request against what was read; the first refusal is the request's.
    pub(super) async fn draft(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        changes: &[&Change],
    ) -> Result<Drafts> {
        let mut drafts = Vec::with_capacity(changes.len());
        for change in changes {
            drafts.push(match &change.read.pointer {
                Some(pointer) if pointer.kind == TabularKind::Table => {
                    self.draft_update(ctx, warehouse, change, pointer).await?
                }
                Some(view) if change.request.asserts_create() => {
                    return Err(view.kind.taken(TabularKind::Table, &change.ident));
                }
                None if change.request.asserts_create() => self.draft_create(ctx, warehouse, change).await?,
                _ => return Err(TabularKind::Table.missing(&change.ident)),
            });
        }
        Ok(Drafts(drafts))
    }

    async fn draft_update(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        change: &Change,
        pointer: &Pointer,
    ) -> Result<Draft> {
        let base = self.tables.documents.table(warehouse, &pointer.metadata_location).await?;
        let request = change.request.clone();
        let (now_ms, previous) = (ctx.now_ms(), pointer.metadata_location.clone());
        let Some(judged) = blocking::run(move || judge(&base, &request, now_ms, &previous)).await? else {
            return Ok(Draft::Unchanged(pointer.clone()));
        };
        let target = self.target(ctx, warehouse, &judged.document.metadata, Some(pointer)).await?;
        let Judged { document, lineage, dropped_files } = judged;
        Ok(Draft::Changed {
            metadata_location: target.metadata_location.clone(),
            change: PointerChange::Move { from: pointer.clone(), target, news: News { lineage, ..News::default() } },
            document,
            dropped_files,
        })
    }

    async fn draft_create(&self, ctx: &RequestContext, warehouse: &Arc<Warehouse>, change: &Change) -> Result<Draft> {
        check_part("name", &change.ident.name)?;
        if change.request.requirements.len() > 1 {
            return Err(Error::invalid("requirements: assert-create must be the only one"));
        }
        let (request, now_ms) = (change.request.clone(), ctx.now_ms());
        let judged = blocking::run(move || assemble(&request, now_ms)).await?;
        let target = self.target(ctx, warehouse, &judged.document.metadata, None).await?;
        let location = Location::parse(judged.document.metadata.location())?;
        self.tables.files.prepare_table(&warehouse.place, &location).await?;
        Ok(Draft::Changed {
            metadata_location: target.metadata_location.clone(),
            change: PointerChange::Create {
                id: TabularId(ctx.new_id()),
                ident: change.ident.clone(),
                kind: TabularKind::Table,
                target,
                news: News { lineage: judged.lineage, ..News::default() },
            },
            document: judged.document,
            dropped_files: Vec::new(),
        })
    }

    /// Where the new metadata goes. A location that is new to the table must be one it may have.
    async fn target(
        &self,
        ctx: &RequestContext,
        warehouse: &Warehouse,
        metadata: &TableMetadata,
        from: Option<&Pointer>,
    ) -> Result<Target> {
        let location = Location::parse(metadata.location())?;
        if from.is_none_or(|from| from.location != location.canonical()) {
            self.tables.check_location(warehouse, &location, from.map(|from| from.id)).await?;
        }
        let previous = from.map(|from| from.metadata_location.as_str());
        Ok(Target {
            uuid: metadata.uuid(),
            location: location.canonical(),
            metadata_location: metadata::next_metadata_location(metadata, previous, ctx.new_id()),
        })
    }
}

impl Draft {
    /// The metadata file to write.
    pub fn file(&self) -> Option<(&str, &TableDocument)> {
        match self {
            Draft::Unchanged(_) => None,
            Draft::Changed { metadata_location, document, .. } => Some((metadata_location, document)),
        }
    }

    fn pointer_change(&self) -> PointerChange {
        match self {
            Draft::Changed { change, .. } => change.clone(),
            // Nothing to write, but its requirements must still hold when the others' pointers move.
            Draft::Unchanged(pointer) => PointerChange::Move {
                from: pointer.clone(),
                target: Target {
                    uuid: pointer.uuid,
                    location: pointer.location.clone(),
                    metadata_location: pointer.metadata_location.clone(),
                },
                news: News::default(),
            },
        }
    }

    fn dropped_files(&self) -> &[String] {
        match self {
            Draft::Unchanged(_) => &[],
            Draft::Changed { dropped_files, .. } => dropped_files,
        }
    }
}

impl Drafts {
    pub fn iter(&self) -> std::slice::Iter<'_, Draft> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn change_nothing(&self) -> bool {
        self.0.iter().all(|draft| matches!(draft, Draft::Unchanged(_)))
    }

    pub fn pointer_changes(&self) -> Vec<PointerChange> {
        self.0.iter().map(Draft::pointer_change).collect()
    }

    /// The new metadata of a single table: a transaction answers with nothing.
    pub fn answer(&self) -> Answer {
        match &self.0[..] {
            [Draft::Changed { document, metadata_location, .. }] => {
                Answer::Document { uuid: document.metadata.uuid(), metadata_location: metadata_location.clone() }
            }
            _ => Answer::Empty,
        }
    }

    pub fn purges(&self, ctx: &RequestContext, warehouse: &Warehouse, grace_ms: i64) -> Vec<PurgeTask> {
        let task = |location: &String| PurgeTask {
            id: PurgeId(ctx.new_id()),
            warehouse: warehouse.id,
            target: PurgeTarget::File { location: location.clone() },
            not_before_ms: ctx.now_ms() + grace_ms,
        };
        self.0.iter().flat_map(Draft::dropped_files).map(task).collect()
    }

    pub async fn publish(self, documents: &Documents, warehouse: &Warehouse) {
        for draft in self.0 {
            if let Draft::Changed { metadata_location, document, .. } = draft {
                documents.remember_table(warehouse, metadata_location, document).await;
            }
        }
    }
}

/// A new document, encoded, with what comes with it.
struct Judged {
    document: Arc<TableDocument>,
    lineage: Vec<Landed>,
    dropped_files: Vec<String>,
}

/// Holds the request against the table as it is; `None` where it changes nothing.
fn judge(base: &TableDocument, request: &CommitRequest, now_ms: i64, previous: &str) -> Result<Option<Judged>> {
    request.requirements.iter().try_for_each(|requirement| requirement.check(Some(&base.metadata)))?;
    sanity::check(&base.metadata, request)?;
    let at = ApplyAt { now_ms, previous_location: Some(previous) };
    let applied = metadata::apply(&base.metadata, &request.updates, &at)?;
    metrics::counter!(TIMESTAMPS_MOVED_TOTAL).increment(applied.moved_timestamps as u64);
    Ok(applied.changed.then(|| Judged {
        lineage: lineage(&request.updates, &applied.metadata),
        dropped_files: own_files(applied.dropped_metadata_files, &applied.metadata),
        document: Arc::new(TableDocument::encoded(applied.metadata)),
    }))
}

/// A log may name files of other tables, where a document was copied: only what lies below the table is its own.
fn own_files(files: Vec<String>, metadata: &TableMetadata) -> Vec<String> {
    let Ok(home) = Location::parse(metadata.location()) else {
        return Vec::new();
    };
    let is_own = |file: &String| Location::parse(file).is_ok_and(|file| home.contains(&file));
    files.into_iter().filter(is_own).collect()
}

/// Makes a table of its first commit.
fn assemble(request: &CommitRequest, now_ms: i64) -> Result<Judged> {
    let metadata = metadata::assemble(&request.updates, now_ms)?;
    Ok(Judged {
        lineage: lineage(&request.updates, &metadata),
        document: Arc::new(TableDocument::encoded(metadata)),
        dropped_files: Vec::new(),
    })
}

/// The snapshots that the request brings, each with the ref it was last put on.
fn lineage(updates: &[TableUpdate], after: &TableMetadata) -> Vec<Landed> {
    let ref_of = |snapshot_id: i64| {
        updates.iter().rev().find_map(|update| match update {
            TableUpdate::SetSnapshotRef { ref_name, target } if target.snapshot_id == snapshot_id => {
                Some(ref_name.clone())
            }
            _ => None,
        })
    };
    updates
        .iter()
        .filter_map(|update| match update {
            TableUpdate::AddSnapshot { snapshot } => Some(snapshot),
            _ => None,
        })
        .map(|added| Landed {
            snapshot_id: added.id(),
            parent_id: added.parent_id(),
            sequence_number: after.snapshot(added.id()).map_or(added.sequence_number(), |kept| kept.sequence_number()),
            ref_name: ref_of(added.id()),
            class: None,
            writer: None,
            is_first: false,
            rebased: false,
            at_ms: after.last_updated_ms(),
        })
        .collect()
}
