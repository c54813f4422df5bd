//! `createTable`: fresh ids, a location of its own, and either a pointer or, when staged, only the metadata.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{Loaded, Tables};
use crate::commits::settings;
use crate::commits::store::{News, PointerChange, Target};
use crate::context::RequestContext;
use crate::documents::TableDocument;
use crate::error::Result;
use crate::ident::{TableIdent, TabularId};
use crate::location::Location;
use crate::metadata::{self, NewTable};
use crate::namespaces::{LOCATION, check_part, missing};
use crate::tabulars::{Plan, TabularKind};
use crate::warehouses::Warehouse;

/// How much of a table's name its folder shows, in bytes.
const SLUG_MAX_BYTES: usize = 48;

/// A table to be made; schema, spec and order as the client sent them.
#[derive(Debug, Clone)]
pub struct CreateTable {
    pub ident: TableIdent,
    pub location: Option<String>,
    pub schema: Box<RawValue>,
    pub partition_spec: Option<Box<RawValue>>,
    pub write_order: Option<Box<RawValue>>,
    /// Make the metadata and nothing else: the table comes with its first commit.
    pub stage_create: bool,
    pub properties: BTreeMap<String, String>,
}

impl Tables {
    pub async fn create(
        &self,
        ctx: &RequestContext,
        warehouse: &Arc<Warehouse>,
        request: CreateTable,
    ) -> Result<Loaded> {
        check_part("name", &request.ident.name)?;
        if request.stage_create {
            let document = self.build(ctx, warehouse, &request).await?;
            return Ok(Loaded {
                metadata_location: None,
                etag: None,
                metadata: document.bytes,
                config: warehouse.table_config(),
            });
        }
        let ident = request.ident.clone();
        let changed = self.tabulars.change(ctx, warehouse, (self.clone(), request), |(this, request), ctx, home| {
            this.plan_create(ctx, home, request).boxed()
        });
        self.answered(warehouse, &ident, changed.await?).await
    }

    async fn plan_create(&self, ctx: &RequestContext, warehouse: &Warehouse, request: &CreateTable) -> Result<Plan> {
        let document = Arc::new(self.build(ctx, warehouse, request).await?);
        let metadata_location = metadata::next_metadata_location(&document.metadata, None, ctx.new_id());
        self.documents.write_new(warehouse, &metadata_location, &document).await?;
        let target = Target {
            uuid: document.metadata.uuid(),
            location: Location::parse(document.metadata.location())?.canonical(),
            metadata_location: metadata_location.clone(),
        };
        let answer = target.answer();
        self.documents.remember_table(warehouse, metadata_location.clone(), document).await;
        let change = PointerChange::Create {
            id: TabularId(ctx.new_id()),
            ident: request.ident.clone(),
            kind: TabularKind::Table,
            target,
            news: News::default(),
        };
        Ok(Plan { written: Some(metadata_location), ..Plan::new(&request.ident, change, answer) })
    }

    /// The first metadata of the table, after everything that can be refused was asked.
    async fn build(&self, ctx: &RequestContext, warehouse: &Warehouse, request: &CreateTable) -> Result<TableDocument> {
        let namespace = self.namespaces.namespace(warehouse.id, &request.ident.namespace).await?;
        let namespace = namespace.ok_or_else(|| missing(&request.ident.namespace))?;
        if let Some(taken) = self.tabulars.find(warehouse, &request.ident).await? {
            return Err(taken.kind.taken(TabularKind::Table, &request.ident));
        }
        settings::check(&request.properties)?;
        let uuid = ctx.new_id();
        let text = match &request.location {
            Some(location) => location.clone(),
            None => own_location(warehouse, &namespace.properties, &request.ident.name, uuid),
        };
        let location = Location::parse(&text)?;
        self.check_location(warehouse, &location, None).await?;
        let metadata = metadata::create(NewTable {
            uuid,
            location: text,
            schema: &request.schema,
            partition_spec: request.partition_spec.as_deref(),
            sort_order: request.write_order.as_deref(),
            properties: request.properties.clone(),
            now_ms: ctx.now_ms(),
        })?;
        self.files.prepare_table(&warehouse.place, &location).await?;
        Ok(TableDocument::encoded(metadata))
    }
}

/// A folder of its own, below the namespace's `location` property where it has one, else below the root.
pub(crate) fn own_location(
    warehouse: &Warehouse,
    namespace: &BTreeMap<String, String>,
    name: &str,
    unique: Uuid,
) -> String {
    let below = namespace.get(LOCATION).map_or(warehouse.place.root.as_str(), String::as_str);
    format!("{}/{}", below.trim_end_matches('/'), folder(name, unique))
}

/// Shows what is in it, and depends on no name being safe in a path or a policy.
fn folder(name: &str, unique: Uuid) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || *c == '_' || *c == '-';
    let slug: String = name.chars().filter(plain).take(SLUG_MAX_BYTES).collect();
    match slug.is_empty() {
        true => unique.to_string(),
        false => format!("{slug}-{unique}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_none_of_its_names_pattern_characters() {
        for (name, expected) in [("orders", "orders-"), ("f*", "f-"), ("*", ""), ("${aws:user}/../x", "awsuserx-")] {
            assert_eq!(folder(name, Uuid::nil()), format!("{expected}{}", Uuid::nil()));
        }
    }
}
