//! Commits as they are asked for. What they hold is read by the catalog, which keeps what it does not know.

use bytes::Bytes;
use catalog::commits::request::{CommitRequest, TransactionRequest};
use catalog::error::{Error, Result};
use utoipa::ToSchema;

use crate::api::iceberg::wire::metadata::{TableRequirement, TableUpdate};
use crate::api::iceberg::wire::tables::TableIdentifier;
use crate::api::request::{BodySize, RequestBody};

/// Changes of one table: none is applied unless all requirements hold.
#[derive(Debug, ToSchema)]
pub struct CommitTableRequest {
    /// Passed over where the path names the table.
    pub identifier: Option<TableIdentifier>,
    pub requirements: Option<Vec<TableRequirement>>,
    pub updates: Vec<TableUpdate>,
}

/// Changes of several tables.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "kebab-case")]
pub struct CommitTransactionRequest {
    /// Each with its identifier, and no table twice.
    #[schema(min_items = 1)]
    pub table_changes: Vec<CommitTableRequest>,
}

impl RequestBody for CommitRequest {
    const SIZE: BodySize = BodySize::Metadata;

    fn read(body: &Bytes) -> Result<Self> {
        Self::parse(body)
    }

    fn refuse(&mut self, fault: Error) -> Result<()> {
        self.note(fault);
        Ok(())
    }
}

impl RequestBody for TransactionRequest {
    const SIZE: BodySize = BodySize::Metadata;

    fn read(body: &Bytes) -> Result<Self> {
        Self::parse(body)
    }

    /// One commit that is at fault is enough to refuse them all.
    fn refuse(&mut self, fault: Error) -> Result<()> {
        match self.changes.first_mut() {
            Some((_, commit)) => commit.refuse(fault),
            None => Err(fault),
        }
    }
}
