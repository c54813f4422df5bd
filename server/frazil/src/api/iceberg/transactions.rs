//! Commits to several tables at once.

use axum::extract::State;
use axum::http::StatusCode;
use catalog::commits::request::TransactionRequest;

use crate::api::Api;
use crate::api::error::Result;
use crate::api::iceberg::wire::commits::CommitTransactionRequest;
use crate::api::place::InWarehouse;
use crate::api::request::Mutation;

/// Commit to several tables: all of them or none.
#[utoipa::path(post, path = "/v1/{prefix}/transactions/commit", tag = "transactions",
    request_body = CommitTransactionRequest,
    responses((status = 204, description = "All commits are in"),
              (status = 409, description = "A requirement of a table does not hold; nothing was changed")))]
pub async fn commit_transaction(
    State(api): State<Api>,
    InWarehouse(warehouse): InWarehouse,
    Mutation { ctx, body }: Mutation<TransactionRequest>,
) -> Result<StatusCode> {
    api.catalog.commits.transact(&ctx, &warehouse, body).await?;
    Ok(StatusCode::NO_CONTENT)
}
