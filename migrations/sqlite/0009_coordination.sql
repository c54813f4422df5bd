-- What commits are coordinated by: who wrote which snapshot, how far each writer is, what became of every request, and
-- what happened in which order. A swap writes all of it in its own transaction; `tabular` stays as narrow as it is. No
-- foreign keys: these rows outlive tables.
--
-- Texts that come from clients may hold U+0000, at which SQLite's JSON ends a text: they are kept escaped, in the same
-- order.

-- All of it is unknown of the snapshots so far.
-- What the snapshot did to files; NULL until a rebase asks.
ALTER TABLE lineage ADD COLUMN class text;
ALTER TABLE lineage ADD COLUMN writer_kind text;
ALTER TABLE lineage ADD COLUMN writer_id text;
ALTER TABLE lineage ADD COLUMN writer_part text;
-- JSON: a number, a map from partition to offset, or a text.
ALTER TABLE lineage ADD COLUMN position text;
-- JSON: an array of numbers.
ALTER TABLE lineage ADD COLUMN counts text;
ALTER TABLE lineage ADD COLUMN epoch integer;
ALTER TABLE lineage ADD COLUMN is_first integer NOT NULL DEFAULT 0;
ALTER TABLE lineage ADD COLUMN rebased integer NOT NULL DEFAULT 0;
-- Of writer and position, which can be long.
ALTER TABLE lineage ADD COLUMN position_hash integer;

CREATE INDEX lineage_position ON lineage (warehouse_id, table_uuid, position_hash) WHERE position_hash IS NOT NULL;
CREATE INDEX lineage_age ON lineage (at_ms);

-- The ledger: how far a writer is on a ref.
CREATE TABLE writer (
    warehouse_id      blob NOT NULL,
    table_uuid        blob NOT NULL,
    -- Ref, kind, id and part in one text of limited length, which sorts as they do.
    place             text NOT NULL,
    ref_name          text NOT NULL,
    writer_kind       text NOT NULL,
    writer_id         text NOT NULL,
    writer_part       text NOT NULL,
    -- As in `lineage`.
    position          text,
    snapshot_id       integer,
    sequence_number   integer NOT NULL,
    -- The writer's first on this ref.
    first_snapshot_id integer,
    -- The table's last one at the last reset: what landed up to there no longer speaks for the writer.
    since_sequence_number integer,
    -- The highest one registered or committed.
    epoch             integer,
    retired           integer NOT NULL,
    at_ms             integer NOT NULL,
    PRIMARY KEY (warehouse_id, table_uuid, place)
) STRICT, WITHOUT ROWID;

-- A writer's rows on all refs.
CREATE INDEX writer_by_id ON writer (warehouse_id, table_uuid, writer_id);

-- Snapshots that came to a ref otherwise than by a commit to it.
CREATE TABLE carried (
    warehouse_id blob NOT NULL,
    table_uuid   blob NOT NULL,
    snapshot_id  integer NOT NULL,
    -- The ref's name; the hash of a long one stands for its end.
    ref_key      text NOT NULL,
    PRIMARY KEY (warehouse_id, table_uuid, snapshot_id, ref_key)
) STRICT, WITHOUT ROWID;

-- One row per request for a table, whatever became of it.
CREATE TABLE commit_log (
    warehouse_id    blob NOT NULL,
    table_uuid      blob NOT NULL,
    -- Ordered by time.
    id              blob NOT NULL,
    -- The table's name then; the namespace is JSON: an array of its levels.
    namespace       text NOT NULL,
    name            text NOT NULL,
    at_ms           integer NOT NULL,
    request_id      text NOT NULL,
    principal       text NOT NULL,
    idempotency_key blob,
    snapshot_id     integer,
    ref_name        text,
    writer_kind     text,
    writer_id       text,
    writer_part     text,
    -- As in `lineage`.
    position        text,
    outcome         text NOT NULL,
    attempt_id      blob,
    duplicate_of    integer,
    detail          text,
    waited_ms       integer NOT NULL,
    group_size      integer NOT NULL,
    attempts        integer NOT NULL,
    PRIMARY KEY (warehouse_id, table_uuid, id)
) STRICT;

CREATE INDEX commit_log_key ON commit_log (warehouse_id, table_uuid, idempotency_key, id)
 WHERE idempotency_key IS NOT NULL;
CREATE INDEX commit_log_snapshot ON commit_log (warehouse_id, table_uuid, snapshot_id, id) WHERE snapshot_id IS NOT NULL;
CREATE INDEX commit_log_age ON commit_log (at_ms);

-- What happened, in the order in which it was committed: there is one writer, and no serial is given twice.
CREATE TABLE outbox (
    serial            integer PRIMARY KEY AUTOINCREMENT,
    warehouse_id      blob NOT NULL,
    tabular_id        blob NOT NULL,
    kind              text NOT NULL,
    table_uuid        blob NOT NULL,
    -- JSON: an array of its levels.
    namespace         text NOT NULL,
    name              text NOT NULL,
    what              text NOT NULL,
    metadata_location text NOT NULL,
    snapshot_id       integer,
    ref_name          text,
    at_ms             integer NOT NULL
) STRICT;

CREATE INDEX outbox_age ON outbox (at_ms);
