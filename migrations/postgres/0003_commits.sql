-- What a swap writes beside the pointer, in the same transaction. No foreign keys: they would lock the warehouse's row
-- with every commit, and these rows outlive tables.

-- One row per swap, so that its outcome can be asked for afterwards. Who inserts first decides: the swap writes
-- 'committed', a resolver writes 'aborted', and the other one meets the key.
CREATE TABLE attempt (
    attempt_id  uuid CONSTRAINT attempt_id PRIMARY KEY,
    outcome     text NOT NULL CHECK (outcome IN ('committed', 'aborted')),
    -- Where one pointer moved: which one, and to which version.
    tabular_id  uuid,
    version     bigint,
    -- Each question writes, so that the answer waits for whatever the commit waits for (a synchronous standby).
    resolutions bigint NOT NULL DEFAULT 0,
    at_ms       bigint NOT NULL
);

-- Snapshots that have landed, by table UUID: remembered beyond expiry, drop and register.
CREATE TABLE lineage (
    warehouse_id    uuid NOT NULL,
    table_uuid      uuid NOT NULL,
    snapshot_id     bigint NOT NULL,
    parent_id       bigint,
    sequence_number bigint NOT NULL,
    ref_name        text,
    at_ms           bigint NOT NULL,
    CONSTRAINT lineage_snapshot PRIMARY KEY (warehouse_id, table_uuid, snapshot_id)
);

-- A snapshot whose table is not known: it may be gone or renamed.
CREATE INDEX lineage_by_snapshot ON lineage (warehouse_id, snapshot_id);

CREATE TABLE idempotency_key (
    warehouse_id uuid NOT NULL,
    key          uuid NOT NULL,
    -- SHA-256 over operation, resource, principal and body.
    binding      bytea NOT NULL CHECK (length(binding) = 32),
    -- JSON.
    answer       text NOT NULL,
    at_ms        bigint NOT NULL,
    CONSTRAINT idempotency_key_once PRIMARY KEY (warehouse_id, key)
);

CREATE INDEX idempotency_key_age ON idempotency_key (at_ms);
