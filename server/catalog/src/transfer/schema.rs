//! The tables that both databases have, in an order in which each comes after those that it refers to.

/// A table as both databases have it.
#[derive(Debug)]
pub struct Table {
    pub name: &'static str,
    pub order: Order,
    pub columns: &'static [Column],
}

impl Table {
    /// As they stand in a statement.
    pub fn column_names(&self) -> String {
        self.columns.iter().map(|column| column.name).collect::<Vec<_>>().join(", ")
    }
}

/// An order that is the same in both databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Of the columns of its key.
    By(&'static [&'static str]),
    /// Parents before their children: by the number of `parts`, then by id.
    Depth,
    /// In which the rows were committed. Their numbers are the database's own, and given anew.
    Committed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Bool,
    Int,
    Text,
    Bytes,
    Uuid,
    Levels,
}

const fn bool(name: &'static str) -> Column {
    Column { name, kind: Kind::Bool }
}

const fn int(name: &'static str) -> Column {
    Column { name, kind: Kind::Int }
}

const fn text(name: &'static str) -> Column {
    Column { name, kind: Kind::Text }
}

const fn bytes(name: &'static str) -> Column {
    Column { name, kind: Kind::Bytes }
}

const fn uuid(name: &'static str) -> Column {
    Column { name, kind: Kind::Uuid }
}

const fn levels(name: &'static str) -> Column {
    Column { name, kind: Kind::Levels }
}

/// A test of each store holds it against the migrations.
pub static TABLES: &[Table] = &[
    Table {
        name: "warehouse",
        order: Order::By(&["id"]),
        columns: &[
            uuid("id"),
            text("name"),
            text("root"),
            text("canonical_root"),
            text("allowed"),
            text("storage"),
            text("defaults"),
            text("overrides"),
            int("version"),
            int("created_at_ms"),
        ],
    },
    Table {
        name: "namespace",
        order: Order::Depth,
        columns: &[
            uuid("id"),
            uuid("warehouse_id"),
            uuid("parent_id"),
            text("name"),
            levels("parts"),
            text("properties"),
            int("created_at_ms"),
        ],
    },
    Table {
        name: "tabular",
        order: Order::By(&["id"]),
        columns: &[
            uuid("id"),
            uuid("warehouse_id"),
            uuid("namespace_id"),
            text("name"),
            text("kind"),
            uuid("uuid"),
            text("location"),
            text("canonical_location"),
            text("metadata_location"),
            int("version"),
        ],
    },
    Table {
        name: "attempt",
        order: Order::By(&["attempt_id"]),
        columns: &[
            uuid("attempt_id"),
            text("outcome"),
            uuid("tabular_id"),
            int("version"),
            int("resolutions"),
            int("at_ms"),
        ],
    },
    Table {
        name: "lineage",
        order: Order::By(&["warehouse_id", "table_uuid", "snapshot_id"]),
        columns: &[
            uuid("warehouse_id"),
            uuid("table_uuid"),
            int("snapshot_id"),
            int("parent_id"),
            int("sequence_number"),
            text("ref_name"),
            int("at_ms"),
            text("class"),
            text("writer_kind"),
            text("writer_id"),
            text("writer_part"),
            text("position"),
            text("counts"),
            int("epoch"),
            bool("is_first"),
            bool("rebased"),
            int("position_hash"),
        ],
    },
    Table {
        name: "writer",
        order: Order::By(&["warehouse_id", "table_uuid", "place"]),
        columns: &[
            uuid("warehouse_id"),
            uuid("table_uuid"),
            text("place"),
            text("ref_name"),
            text("writer_kind"),
            text("writer_id"),
            text("writer_part"),
            text("position"),
            int("snapshot_id"),
            int("sequence_number"),
            int("first_snapshot_id"),
            int("since_sequence_number"),
            int("epoch"),
            bool("retired"),
            int("at_ms"),
        ],
    },
    Table {
        name: "carried",
        order: Order::By(&["warehouse_id", "table_uuid", "snapshot_id", "ref_key"]),
        columns: &[uuid("warehouse_id"), uuid("table_uuid"), int("snapshot_id"), text("ref_key")],
    },
    Table {
        name: "commit_log",
        order: Order::By(&["warehouse_id", "table_uuid", "id"]),
        columns: &[
            uuid("warehouse_id"),
            uuid("table_uuid"),
            uuid("id"),
            text("namespace"),
            text("name"),
            int("at_ms"),
            text("request_id"),
            text("principal"),
            uuid("idempotency_key"),
            int("snapshot_id"),
            text("ref_name"),
            text("writer_kind"),
            text("writer_id"),
            text("writer_part"),
            text("position"),
            text("outcome"),
            uuid("attempt_id"),
            int("duplicate_of"),
            text("detail"),
            int("waited_ms"),
            int("group_size"),
            int("attempts"),
        ],
    },
    Table {
        name: "idempotency_key",
        order: Order::By(&["warehouse_id", "key"]),
        columns: &[uuid("warehouse_id"), uuid("key"), bytes("binding"), text("answer"), int("at_ms")],
    },
    Table {
        name: "purge",
        order: Order::By(&["id"]),
        columns: &[
            uuid("id"),
            uuid("warehouse_id"),
            text("target"),
            int("not_before_ms"),
            int("lease_until_ms"),
            int("failures"),
            text("last_error"),
            text("canonical_location"),
            text("root"),
            text("canonical_root"),
            text("allowed"),
            text("storage"),
        ],
    },
    Table {
        name: "service_principal",
        order: Order::By(&["id"]),
        columns: &[
            uuid("id"),
            text("name"),
            bytes("secret_hash"),
            int("generation"),
            int("created_at_ms"),
            int("expires_at_ms"),
            int("revoked_at_ms"),
        ],
    },
    Table {
        name: "signing_key",
        order: Order::By(&["the_only"]),
        columns: &[bool("the_only"), uuid("id"), text("secret"), int("created_at_ms")],
    },
    Table {
        name: "outbox",
        order: Order::Committed,
        columns: &[
            uuid("warehouse_id"),
            uuid("tabular_id"),
            text("kind"),
            uuid("table_uuid"),
            text("namespace"),
            text("name"),
            text("what"),
            text("metadata_location"),
            int("snapshot_id"),
            text("ref_name"),
            int("at_ms"),
        ],
    },
];
