-- What commits are coordinated by: who wrote which snapshot, how far each writer is, what became of every request, and
-- what happened in which order. A swap writes all of it in its own transaction; `tabular` stays as narrow as it is. No
-- foreign keys: they would lock rows with every commit, and these rows outlive tables.
--
-- Texts that come from clients may hold U+0000, which Postgres does not: they are kept escaped, in the same order.

-- All of it is unknown of the snapshots so far.
ALTER TABLE lineage
    -- What the snapshot did to files; NULL until a rebase asks.
    ADD COLUMN class         text,
    ADD COLUMN writer_kind   text,
    ADD COLUMN writer_id     text,
    ADD COLUMN writer_part   text,
    -- JSON: a number, a map from partition to offset, or a text.
    ADD COLUMN position      text,
    -- JSON: an array of numbers.
    ADD COLUMN counts        text,
    ADD COLUMN epoch         bigint,
    ADD COLUMN is_first      boolean NOT NULL DEFAULT false,
    ADD COLUMN rebased       boolean NOT NULL DEFAULT false,
    -- Of writer and position: neither has a limit of length, and a key of a B-tree has one.
    ADD COLUMN position_hash bigint;

CREATE INDEX lineage_position ON lineage (warehouse_id, table_uuid, position_hash) WHERE position_hash IS NOT NULL;
CREATE INDEX lineage_age ON lineage (at_ms);

-- The ledger: how far a writer is on a ref.
CREATE TABLE writer (
    warehouse_id      uuid NOT NULL,
    table_uuid        uuid NOT NULL,
    -- Ref, kind, id and part in one text of limited length, which sorts as they do.
    place             text COLLATE "C" NOT NULL,
    ref_name          text NOT NULL,
    writer_kind       text NOT NULL,
    writer_id         text NOT NULL,
    writer_part       text NOT NULL,
    -- As in `lineage`.
    position          text,
    snapshot_id       bigint,
    sequence_number   bigint NOT NULL,
    -- The writer's first on this ref.
    first_snapshot_id bigint,
    -- The table's last one at the last reset: what landed up to there no longer speaks for the writer.
    since_sequence_number bigint,
    -- The highest one registered or committed.
    epoch             bigint,
    retired           boolean NOT NULL,
    at_ms             bigint NOT NULL,
    CONSTRAINT writer_once PRIMARY KEY (warehouse_id, table_uuid, place)
)
-- A commit changes no indexed column: with room on its page the row stays there (HOT).
WITH (fillfactor = 60);

-- A writer's rows on all refs. A hash has no limit of length.
CREATE INDEX writer_by_id ON writer USING hash (writer_id);

-- Snapshots that came to a ref otherwise than by a commit to it.
CREATE TABLE carried (
    warehouse_id uuid NOT NULL,
    table_uuid   uuid NOT NULL,
    snapshot_id  bigint NOT NULL,
    -- The ref's name; the hash of a long one stands for its end.
    ref_key      text COLLATE "C" NOT NULL,
    PRIMARY KEY (warehouse_id, table_uuid, snapshot_id, ref_key)
);

-- One row per request for a table, whatever became of it.
CREATE TABLE commit_log (
    warehouse_id    uuid NOT NULL,
    table_uuid      uuid NOT NULL,
    -- Ordered by time.
    id              uuid NOT NULL,
    -- The table's name then; the namespace is JSON: an array of its levels.
    namespace       text NOT NULL,
    name            text NOT NULL,
    at_ms           bigint NOT NULL,
    request_id      text NOT NULL,
    principal       text NOT NULL,
    idempotency_key uuid,
    snapshot_id     bigint,
    ref_name        text,
    writer_kind     text,
    writer_id       text,
    writer_part     text,
    -- As in `lineage`.
    position        text,
    outcome         text NOT NULL,
    attempt_id      uuid,
    duplicate_of    bigint,
    detail          text,
    waited_ms       bigint NOT NULL,
    group_size      bigint NOT NULL,
    attempts        bigint NOT NULL,
    PRIMARY KEY (warehouse_id, table_uuid, id)
);

CREATE INDEX commit_log_key ON commit_log (warehouse_id, table_uuid, idempotency_key, id)
 WHERE idempotency_key IS NOT NULL;
CREATE INDEX commit_log_snapshot ON commit_log (warehouse_id, table_uuid, snapshot_id, id) WHERE snapshot_id IS NOT NULL;
CREATE INDEX commit_log_age ON commit_log (at_ms);

-- What happened, in the order in which it was committed. A serial alone would not do: it is given before the commit, and
-- a reader would pass over one whose transaction commits late. So a row is shown only when every transaction up to its
-- own has ended, and the order is by transaction first. Of two swaps of one table the later one begins after the commit
-- of the earlier, so the order of their transactions is that of their commits.
--
-- Transaction ids are this cluster's own: a dump that is restored into another one must leave these rows behind.
CREATE TABLE outbox (
    xid               xid8 NOT NULL DEFAULT pg_current_xact_id(),
    serial            bigint GENERATED ALWAYS AS IDENTITY,
    warehouse_id      uuid NOT NULL,
    tabular_id        uuid NOT NULL,
    kind              text NOT NULL,
    table_uuid        uuid NOT NULL,
    -- JSON: an array of its levels.
    namespace         text NOT NULL,
    name              text NOT NULL,
    what              text NOT NULL,
    metadata_location text NOT NULL,
    snapshot_id       bigint,
    ref_name          text,
    at_ms             bigint NOT NULL,
    PRIMARY KEY (xid, serial)
);

CREATE INDEX outbox_age ON outbox (at_ms);
