-- $1 to $4 id, version and metadata location as read, and the new metadata location; $5 and $6 attempt and time; then one
-- JSON array of rows per table.
WITH moved AS (
    UPDATE tabular SET version = version + 1, metadata_location = $4
     WHERE id = $1 AND version = $2 AND metadata_location = $3
    RETURNING id, warehouse_id, uuid, version
), attempted AS (
    INSERT INTO attempt (attempt_id, outcome, tabular_id, version, at_ms)
    SELECT $5, 'committed', id, version, $6 FROM moved
), landed AS (
    INSERT INTO lineage (warehouse_id, table_uuid, snapshot_id, parent_id, sequence_number, ref_name, class, writer_kind,
                         writer_id, writer_part, position, counts, epoch, is_first, rebased, position_hash, at_ms)
    SELECT moved.warehouse_id, moved.uuid, new.*
      FROM moved, json_to_recordset($7::text::json)
           AS new (snapshot_id bigint, parent_id bigint, sequence_number bigint, ref_name text, class text,
                   writer_kind text, writer_id text, writer_part text, position text, counts text, epoch bigint,
                   is_first boolean, rebased boolean, position_hash bigint, at_ms bigint)
), carried_too AS (
    INSERT INTO carried (warehouse_id, table_uuid, snapshot_id, ref_key)
    SELECT moved.warehouse_id, moved.uuid, new.*
      FROM moved, json_to_recordset($8::text::json) AS new (snapshot_id bigint, ref_key text)
    ON CONFLICT DO NOTHING
), went_on AS (
    INSERT INTO writer (warehouse_id, table_uuid, place, ref_name, writer_kind, writer_id, writer_part, position,
                        snapshot_id, sequence_number, first_snapshot_id, since_sequence_number, epoch, retired, at_ms)
    SELECT moved.warehouse_id, moved.uuid, new.*
      FROM moved, json_to_recordset($9::text::json)
           AS new (place text, ref_name text, writer_kind text, writer_id text, writer_part text, position text,
                   snapshot_id bigint, sequence_number bigint, first_snapshot_id bigint, since_sequence_number bigint,
                   epoch bigint, retired boolean, at_ms bigint)
    ON CONFLICT ON CONSTRAINT writer_once DO UPDATE
       SET position = excluded.position, snapshot_id = excluded.snapshot_id, sequence_number = excluded.sequence_number,
           first_snapshot_id = coalesce(writer.first_snapshot_id, excluded.first_snapshot_id),
           since_sequence_number = greatest(writer.since_sequence_number, excluded.since_sequence_number),
           epoch = greatest(writer.epoch, excluded.epoch), retired = excluded.retired, at_ms = excluded.at_ms
), kept AS (
    INSERT INTO idempotency_key (warehouse_id, key, binding, answer, at_ms)
    SELECT moved.warehouse_id, new.key, decode(new.binding, 'hex'), new.answer, new.at_ms
      FROM moved, json_to_recordset($10::text::json) AS new (key uuid, binding text, answer text, at_ms bigint)
), logged AS (
    INSERT INTO commit_log (warehouse_id, table_uuid, id, namespace, name, at_ms, request_id, principal,
                            idempotency_key, snapshot_id, ref_name, writer_kind, writer_id, writer_part, position,
                            outcome, attempt_id, duplicate_of, detail, waited_ms, group_size, attempts)
    SELECT new.*
      FROM moved, json_to_recordset($11::text::json)
           AS new (warehouse_id uuid, table_uuid uuid, id uuid, namespace text, name text, at_ms bigint,
                   request_id text, principal text, idempotency_key uuid, snapshot_id bigint, ref_name text,
                   writer_kind text, writer_id text, writer_part text, position text, outcome text, attempt_id uuid,
                   duplicate_of bigint, detail text, waited_ms bigint, group_size bigint, attempts bigint)
    ON CONFLICT DO NOTHING
), told AS (
    INSERT INTO outbox (warehouse_id, tabular_id, kind, table_uuid, namespace, name, what, metadata_location,
                        snapshot_id, ref_name, at_ms)
    SELECT new.*
      FROM moved, json_to_recordset($12::text::json)
           AS new (warehouse_id uuid, tabular_id uuid, kind text, table_uuid uuid, namespace text, name text,
                   what text, metadata_location text, snapshot_id bigint, ref_name text, at_ms bigint)
), purged AS (
    INSERT INTO purge (id, warehouse_id, target, canonical_location, not_before_ms)
    SELECT new.id, moved.warehouse_id, new.target, new.canonical_location, new.not_before_ms
      FROM moved, json_to_recordset($13::text::json)
           AS new (id uuid, target text, canonical_location text, not_before_ms bigint)
)
SELECT version, set_config('synchronous_commit', 'on', true) FROM moved
