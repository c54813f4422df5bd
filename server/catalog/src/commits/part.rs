//! One table's part in a swap: its document so far, and everything that is written with its pointer.

use std::sync::Arc;

use crate::blocking;
use crate::commits::intent::added;
use crate::commits::lineage::{self, Landed, Mark, WriterRow};
use crate::commits::rebase::{NewFile, Relinked};
use crate::commits::store::{News, PointerChange, Target};
use crate::context::RequestContext;
use crate::documents::TableDocument;
use crate::error::Result;
use crate::events::{Event, What};
use crate::idempotency::Answer;
use crate::ident::{TableIdent, TabularId, WarehouseId};
use crate::location::Location;
use crate::metadata::{self, Applied, Snapshot, TableMetadata, TableUpdate};
use crate::tabulars::{Pointer, TabularKind};

/// A chain of commits on one table, not written yet. Each of them is judged against what the ones before it left.
pub(super) struct Part {
    pub ident: TableIdent,
    warehouse: WarehouseId,
    origin: Origin,
    metadata: TableMetadata,
    is_changed: bool,
    news: News,
    files: Vec<NewFile>,
    events: Vec<Event>,
    dropped_files: Vec<String>,
}

/// What the part begins with.
enum Origin {
    Pointer(Pointer),
    /// A new table.
    Nothing(TabularId),
}

/// A part that is ready to be written.
pub(super) struct Ready {
    pub ident: TableIdent,
    pub change: PointerChange,
    pub target: Target,
    /// `None` where the document stays as it is.
    pub document: Option<Arc<TableDocument>>,
    pub files: Vec<NewFile>,
    pub events: Vec<Event>,
    pub dropped_files: Vec<String>,
}

impl Part {
    /// Begins with a table as it is.
    pub fn new(warehouse: WarehouseId, ident: TableIdent, pointer: Pointer, metadata: TableMetadata) -> Self {
        Self::begin(warehouse, ident, Origin::Pointer(pointer), metadata)
    }

    fn begin(warehouse: WarehouseId, ident: TableIdent, origin: Origin, metadata: TableMetadata) -> Self {
        Self {
            ident,
            warehouse,
            origin,
            metadata,
            is_changed: false,
            news: News::default(),
            files: Vec::new(),
            events: Vec::new(),
            dropped_files: Vec::new(),
        }
    }

    /// A table that is made by its first commit.
    pub fn create(
        ctx: &RequestContext,
        warehouse: WarehouseId,
        ident: TableIdent,
        (metadata, updates): (TableMetadata, &[TableUpdate]),
    ) -> Self {
        let mut part = Self::begin(warehouse, ident, Origin::Nothing(TabularId(ctx.new_id())), metadata);
        part.is_changed = true;
        let landed = landed(updates, &part.metadata, ctx.now_ms(), |_| None);
        part.tell(What::Created, landed.last(), ctx.now_ms());
        part.remember(landed, Vec::new(), ctx.now_ms());
        part
    }

    pub fn metadata(&self) -> &TableMetadata {
        &self.metadata
    }

    pub fn pointer(&self) -> Option<&Pointer> {
        match &self.origin {
            Origin::Pointer(pointer) => Some(pointer),
            Origin::Nothing(_) => None,
        }
    }

    /// Whether there is anything to write.
    pub fn is_changed(&self) -> bool {
        self.is_changed || !self.news.writers.is_empty()
    }

    /// Where its first change finds the document that it changes; later ones change what was never written.
    pub fn previous_location(&self) -> Option<&str> {
        self.pointer().filter(|_| !self.is_changed).map(|pointer| pointer.metadata_location.as_str())
    }

    /// The snapshots that the chain has brought so far, the oldest first.
    pub fn lineage(&self) -> &[Landed] {
        &self.news.lineage
    }

    /// What the files that it holds take in memory.
    pub fn files_bytes(&self) -> usize {
        self.files.iter().map(|file| file.bytes.len()).sum()
    }

    /// The answer of a request that changes nothing and depends on nothing that is still to be written.
    pub fn before(&self) -> Answer {
        self.pointer().map_or(Answer::Empty, Pointer::answer)
    }

    pub fn has_landed(&self, snapshot_id: i64) -> bool {
        self.news.lineage.iter().any(|landed| landed.snapshot_id == snapshot_id)
    }

    /// The last row that the chain has for a writer.
    pub fn row(&self, wanted: impl Fn(&WriterRow) -> bool) -> Option<&WriterRow> {
        self.news.writers.iter().find(|row| wanted(row))
    }

    /// Puts a row in the place of the one of its ref and writer.
    pub fn put_row(&mut self, row: WriterRow) {
        match self.news.writers.iter_mut().find(|other| other.is_of(&row.ref_name, &row.writer)) {
            Some(other) => *other = row,
            None => self.news.writers.push(row),
        }
    }

    pub fn carry(&mut self, carried: Vec<(String, i64)>) {
        self.news.carried.extend(carried);
    }

    /// Takes in a commit: its document, its snapshots and their writers, and the files that a rebase made for it.
    pub fn add(&mut self, applied: Applied, landed: Vec<Landed>, relinked: Option<Relinked>, at_ms: i64) {
        self.metadata = applied.metadata;
        self.is_changed = true;
        self.dropped_files.extend(own_files(applied.dropped_metadata_files, &self.metadata));
        self.tell(What::Committed, landed.last(), at_ms);
        let files = relinked.map(|relinked| relinked.files).unwrap_or_default();
        self.remember(landed, files, at_ms);
    }

    fn remember(&mut self, mut landed: Vec<Landed>, files: Vec<NewFile>, at_ms: i64) {
        for one in &mut landed {
            if let Some(ref_name) = one.ref_name.clone() {
                one.is_first = lineage::go_on(&mut self.news.writers, &ref_name, one, at_ms);
            }
        }
        self.news.lineage.extend(landed);
        self.files.extend(files);
    }

    fn tell(&mut self, what: What, landed: Option<&Landed>, at_ms: i64) {
        let tabular = match &self.origin {
            Origin::Pointer(pointer) => pointer.id,
            Origin::Nothing(id) => *id,
        };
        self.events.push(Event {
            warehouse: self.warehouse,
            tabular,
            kind: TabularKind::Table,
            uuid: self.metadata.uuid(),
            ident: self.ident.clone(),
            what,
            // Known when the whole chain is.
            metadata_location: String::new(),
            snapshot_id: landed.map(|landed| landed.snapshot_id),
            ref_name: landed.and_then(|landed| landed.ref_name.clone()),
            at_ms,
        });
    }

    /// Gives the document its bytes and its place.
    pub async fn ready(self, ctx: &RequestContext) -> Result<Ready> {
        let Self { ident, origin, metadata, is_changed, news, files, mut events, dropped_files, .. } = self;
        if let (Origin::Pointer(pointer), false) = (&origin, is_changed) {
            let target = Target::standing(pointer);
            let change = PointerChange::Move { from: pointer.clone(), target: target.clone(), news };
            return Ok(Ready { ident, change, target, document: None, files, events, dropped_files });
        }
        let previous = match &origin {
            Origin::Pointer(pointer) => Some(pointer.metadata_location.as_str()),
            Origin::Nothing(_) => None,
        };
        let target = Target {
            uuid: metadata.uuid(),
            location: Location::parse(metadata.location())?.canonical(),
            metadata_location: metadata::next_metadata_location(&metadata, previous, ctx.new_id()),
        };
        events.iter_mut().for_each(|event| event.metadata_location.clone_from(&target.metadata_location));
        let document = blocking::run(move || Ok(Arc::new(TableDocument::encoded(metadata)))).await?;
        let change = match origin {
            Origin::Pointer(from) => PointerChange::Move { from, target: target.clone(), news },
            Origin::Nothing(id) => PointerChange::Create {
                id,
                ident: ident.clone(),
                kind: TabularKind::Table,
                target: target.clone(),
                news,
            },
        };
        Ok(Ready { ident, change, target, document: Some(document), files, events, dropped_files })
    }
}

impl Ready {
    /// The files that are written for this part, those that the document refers to first.
    pub fn locations(&self) -> impl Iterator<Item = &str> {
        let own = self.document.is_some().then_some(self.target.metadata_location.as_str());
        self.files.iter().map(|file| file.location.as_str()).chain(own)
    }
}

/// The snapshots that updates bring, each with the branch on whose chain it was put. `more` gives what only the lineage
/// knows: the mark of a cherry-picked snapshot's source.
pub(super) fn landed(
    updates: &[TableUpdate],
    after: &TableMetadata,
    at_ms: i64,
    more: impl Fn(i64) -> Option<Mark>,
) -> Vec<Landed> {
    added(updates)
        .map(|snapshot| {
            let id = snapshot.id();
            let told = Landed::of(snapshot, at_ms);
            Landed {
                sequence_number: after.snapshot(id).map_or(told.sequence_number, Snapshot::sequence_number),
                ref_name: ref_of(updates, id),
                writer: told.writer.or_else(|| more(id)),
                ..told
            }
        })
        .collect()
}

/// The branch that a new snapshot was put on: itself, or with a chain of new snapshots that ends there. A tag on it is no
/// place that its writer commits to.
pub(super) fn ref_of(updates: &[TableUpdate], snapshot_id: i64) -> Option<String> {
    let parent = |id: &i64| added(updates).find(|snapshot| snapshot.id() == *id).and_then(|child| child.parent_id());
    updates.iter().rev().find_map(|update| match update {
        TableUpdate::SetSnapshotRef { ref_name, target } if target.is_branch() => {
            // No chain is longer than the list of what was added.
            let mut chain = std::iter::successors(Some(target.snapshot_id), parent).take(updates.len());
            chain.any(|id| id == snapshot_id).then(|| ref_name.clone())
        }
        _ => None,
    })
}

/// A log may name files of other tables, where a document was copied: only what lies below the table is its own.
fn own_files(files: Vec<String>, metadata: &TableMetadata) -> Vec<String> {
    let Ok(home) = Location::parse(metadata.location()) else {
        return Vec::new();
    };
    let is_own = |file: &String| Location::parse(file).is_ok_and(|file| home.contains(&file));
    files.into_iter().filter(is_own).collect()
}
