//! `registerTable`: a pointer to a metadata file that is there already, taken as it is.

use std::collections::HashSet;
use std::sync::Arc;

use super::{Loaded, Tables};
use crate::blocking;
use crate::commits::store::{Landed, PointerChange, Target};
use crate::context::RequestContext;
use crate::error::Result;
use crate::ident::{TableIdent, TabularId};
use crate::location::Location;
use crate::metadata::{Snapshot, TableMetadata};
use crate::namespaces::{check_part, missing};
use crate::tabulars::{Plan, TabularKind};
use crate::warehouses::Warehouse;

#[derive(Debug, Clone)]
pub struct RegisterTable {
    pub ident: TableIdent,
    pub metadata_location: String,
    /// Repoint a table of that name, in one step.
    pub overwrite: bool,
}

impl Tables {
    pub async fn register(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        request: RegisterTable,
    ) -> Result<Loaded> {
        check_part("name", &request.ident.name)?;
        let ident = request.ident.clone();
        let (this, home, request) = (self.clone(), warehouse.clone(), Arc::new(request));
        let plan = move |ctx| {
            let (this, home, request) = (this.clone(), home.clone(), request.clone());
            async move { this.plan_register(&ctx, &home, &request).await }
        };
        let answered = self.tabulars.change(ctx, warehouse, plan).await?;
        self.answered(warehouse, &ident, answered).await
    }

    async fn plan_register(
        &self,
        ctx: &RequestContext,
        warehouse: &Warehouse,
        request: &RegisterTable,
    ) -> Result<Plan> {
        if self
            .namespaces
            .namespace(warehouse.id, &request.ident.namespace)
            .await?
            .is_none()
        {
            return Err(missing(&request.ident.namespace));
        }
        let present = self.tabulars.find(warehouse, &request.ident).await?;
        if let Some(taken) = present
            .as_ref()
            .filter(|p| !request.overwrite || p.kind != TabularKind::Table)
        {
            return Err(taken.kind.taken(TabularKind::Table, &request.ident));
        }
        warehouse.place.check(&Location::parse(&request.metadata_location)?)?;
        let document = self.documents.table_anew(warehouse, &request.metadata_location).await?;
        let foreign = Arc::clone(&document);
        blocking::run(move || foreign.metadata.check_foreign()).await?;
        let location = Location::parse(document.metadata.location())?;
        self.check_location(warehouse, &location, present.as_ref().map(|p| p.id))
            .await?;
        let target = Target {
            uuid: document.metadata.uuid(),
            location: location.canonical(),
            metadata_location: request.metadata_location.clone(),
        };
        let answer = target.answer();
        let lineage = self.new_lineage(warehouse, &document.metadata).await?;
        let change = match present {
            Some(from) => PointerChange::Move { from, target, lineage },
            None => PointerChange::Create {
                id: TabularId(ctx.new_id()),
                ident: request.ident.clone(),
                kind: TabularKind::Table,
                target,
                lineage,
            },
        };
        Ok(Plan::new(change, answer))
    }

    /// Every snapshot of the document landed, whoever brought it; a UUID that comes back knows most of its own.
    async fn new_lineage(&self, warehouse: &Warehouse, metadata: &TableMetadata) -> Result<Vec<Landed>> {
        let ids: Vec<i64> = metadata.snapshots().map(Snapshot::id).collect();
        let known: HashSet<i64> = self
            .commits
            .landed(warehouse.id, Some(metadata.uuid()), &ids)
            .await?
            .into_iter()
            .collect();
        let new = metadata.snapshots().filter(|snapshot| !known.contains(&snapshot.id()));
        Ok(new
            .map(|snapshot| Landed {
                snapshot_id: snapshot.id(),
                parent_id: snapshot.parent_id(),
                sequence_number: snapshot.sequence_number(),
                ref_name: None,
            })
            .collect())
    }
}
