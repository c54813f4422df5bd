//! The audit log: one event for each change that landed, under a target of its own.

use tracing::Span;

use crate::commits::store::PointerChange;
use crate::context::RequestContext;
use crate::ident::{NamespaceIdent, TableIdent, WarehouseName};

/// The target of these events, for the filter of the log.
pub const TARGET: &str = "audit";

/// Changes that the audit log tells of.
pub const EVENTS_TOTAL: &str = "frazil_audit_events_total";

/// The outcome of a change that is no commit.
pub const APPLIED: &str = "applied";

/// Who makes a change with a command on the database itself.
const OPERATOR: &str = "operator";

/// One change, by whom and of what.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The thing and the verb, as in `table.commit`.
    pub action: String,
    pub principal: String,
    pub request_id: String,
    pub warehouse: Option<String>,
    pub namespace: Option<String>,
    /// The name of the table or view; after the change, where that is a rename.
    pub table: Option<String>,
    /// What else was changed or is to be known: the writer, the principal, the old name.
    pub subject: Option<String>,
    pub outcome: &'static str,
    pub snapshot_id: Option<i64>,
    /// The request's, so that its other fields stand in the event too.
    span: Span,
}

impl Entry {
    /// A change that the request of `ctx` asked for; where it is made is set by the methods below.
    pub fn new(ctx: &RequestContext, action: impl Into<String>) -> Self {
        let (principal, request_id) = (ctx.principal.name().to_owned(), ctx.request_id.clone());
        Self { principal, request_id, span: Span::current(), ..Self::by_operator(action) }
    }

    /// A change that an operator makes on the database itself, with a command and no request.
    pub fn by_operator(action: impl Into<String>) -> Self {
        Self {
            action: action.into(),
            principal: OPERATOR.to_owned(),
            request_id: String::new(),
            warehouse: None,
            namespace: None,
            table: None,
            subject: None,
            outcome: APPLIED,
            snapshot_id: None,
            span: Span::none(),
        }
    }

    pub fn warehouse(self, name: &WarehouseName) -> Self {
        Self { warehouse: Some(name.to_string()), ..self }
    }

    pub fn namespace(self, ident: &NamespaceIdent) -> Self {
        Self { namespace: Some(ident.to_string()), ..self }
    }

    pub fn table(self, ident: &TableIdent) -> Self {
        Self { table: Some(ident.name.clone()), ..self.namespace(&ident.namespace) }
    }

    pub fn subject(self, subject: Option<String>) -> Self {
        Self { subject, ..self }
    }

    /// A commit that brought this snapshot, if it brought one.
    pub fn commit(self, outcome: &'static str, snapshot_id: Option<i64>) -> Self {
        Self { outcome, snapshot_id, ..self }
    }

    /// The span of the request, where it is not the current one.
    pub fn within(self, span: &Span) -> Self {
        Self { span: span.clone(), ..self }
    }
}

/// Tells of a change that landed. What was only replayed is none.
pub fn record(entry: Entry) {
    metrics::counter!(EVENTS_TOTAL, "action" => entry.action.clone()).increment(1);
    let Entry { action, principal, request_id, warehouse, namespace, table, subject, outcome, snapshot_id, span } =
        entry;
    span.in_scope(|| {
        tracing::info!(
            target: TARGET,
            action, principal, request_id, warehouse, namespace, table, subject, outcome, snapshot_id,
            "changed"
        );
    });
}

/// What a change of one pointer is called, commits through a queue aside; a register `adopts`.
pub(crate) fn action(change: &PointerChange, adopts: bool) -> String {
    if change.stands() {
        return "writer.change".to_owned();
    }
    let (kind, verb) = match change {
        PointerChange::Create { kind, .. } if adopts => (*kind, "register"),
        PointerChange::Create { kind, .. } => (*kind, "create"),
        PointerChange::Move { from, .. } if adopts => (from.kind, "register"),
        PointerChange::Move { from, .. } => (from.kind, "commit"),
        PointerChange::Rename { from, .. } => (from.kind, "rename"),
        PointerChange::Drop { from } => (from.kind, "drop"),
    };
    format!("{}.{verb}", kind.as_str())
}
