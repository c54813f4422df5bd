-- What a swap writes beside the pointer, in the same transaction. No foreign keys: these rows outlive tables.

-- One row per swap, so that its outcome can be asked for afterwards. Who inserts first decides: the swap writes
-- 'committed', a resolver writes 'aborted', and the other one meets the key.
CREATE TABLE attempt (
    attempt_id  blob PRIMARY KEY NOT NULL,
    outcome     text NOT NULL CHECK (outcome IN ('committed', 'aborted')),
    -- Where one pointer moved: which one, and to which version.
    tabular_id  blob,
    version     integer,
    -- Each question writes, so that its own commit proves that the disk still takes commits.
    resolutions integer NOT NULL DEFAULT 0,
    at_ms       integer NOT NULL
) STRICT;

-- Snapshots that have landed, by table UUID: remembered beyond expiry, drop and register.
CREATE TABLE lineage (
    warehouse_id    blob NOT NULL,
    table_uuid      blob NOT NULL,
    snapshot_id     integer NOT NULL,
    parent_id       integer,
    sequence_number integer NOT NULL,
    ref_name        text,
    at_ms           integer NOT NULL,
    PRIMARY KEY (warehouse_id, table_uuid, snapshot_id)
) STRICT, WITHOUT ROWID;

-- A snapshot whose table is not known: it may be gone or renamed.
CREATE INDEX lineage_by_snapshot ON lineage (warehouse_id, snapshot_id);

CREATE TABLE idempotency_key (
    warehouse_id blob NOT NULL,
    key          blob NOT NULL,
    -- SHA-256 over operation, resource, principal and body.
    binding      blob NOT NULL CHECK (length(binding) = 32),
    -- JSON.
    answer       text NOT NULL,
    at_ms        integer NOT NULL,
    PRIMARY KEY (warehouse_id, key)
) STRICT;

CREATE INDEX idempotency_key_age ON idempotency_key (at_ms);
