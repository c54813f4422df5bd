-- $1 to $4 id, version and metadata location as read, and the new metadata location; $5 and $6 attempt and time; then one
-- JSON array of rows per table. Where the update finds nothing, no attempt is written, and nothing else without it.
BEGIN IMMEDIATE;
UPDATE tabular SET version = version + 1, metadata_location = $4
 WHERE id = $1 AND version = $2 AND metadata_location = $3;
INSERT INTO attempt (attempt_id, outcome, tabular_id, version, at_ms)
SELECT $5, 'committed', id, version, $6 FROM tabular WHERE id = $1 AND changes() = 1;
INSERT INTO lineage (warehouse_id, table_uuid, snapshot_id, parent_id, sequence_number, ref_name, class, writer_kind,
                     writer_id, writer_part, position, counts, epoch, is_first, rebased, position_hash, at_ms)
SELECT moved.warehouse_id, moved.uuid, value ->> 'snapshot_id', value ->> 'parent_id', value ->> 'sequence_number',
       value ->> 'ref_name', value ->> 'class', value ->> 'writer_kind', value ->> 'writer_id', value ->> 'writer_part',
       value ->> 'position', value ->> 'counts', value ->> 'epoch', value ->> 'is_first', value ->> 'rebased',
       value ->> 'position_hash', value ->> 'at_ms'
  FROM attempt JOIN tabular moved ON moved.id = $1, json_each($7)
 WHERE attempt_id = $5 AND outcome = 'committed';
INSERT INTO carried (warehouse_id, table_uuid, snapshot_id, ref_key)
SELECT moved.warehouse_id, moved.uuid, value ->> 'snapshot_id', value ->> 'ref_key'
  FROM attempt JOIN tabular moved ON moved.id = $1, json_each($8)
 WHERE attempt_id = $5 AND outcome = 'committed'
ON CONFLICT DO NOTHING;
INSERT INTO writer (warehouse_id, table_uuid, place, ref_name, writer_kind, writer_id, writer_part, position,
                    snapshot_id, sequence_number, first_snapshot_id, since_sequence_number, epoch, retired, at_ms)
SELECT moved.warehouse_id, moved.uuid, value ->> 'place', value ->> 'ref_name', value ->> 'writer_kind',
       value ->> 'writer_id', value ->> 'writer_part', value ->> 'position', value ->> 'snapshot_id',
       value ->> 'sequence_number', value ->> 'first_snapshot_id', value ->> 'since_sequence_number', value ->> 'epoch',
       value ->> 'retired', value ->> 'at_ms'
  FROM attempt JOIN tabular moved ON moved.id = $1, json_each($9)
 WHERE attempt_id = $5 AND outcome = 'committed'
ON CONFLICT (warehouse_id, table_uuid, place) DO UPDATE
   SET position = excluded.position, snapshot_id = excluded.snapshot_id, sequence_number = excluded.sequence_number,
       first_snapshot_id = coalesce(first_snapshot_id, excluded.first_snapshot_id),
       since_sequence_number = coalesce(max(since_sequence_number, excluded.since_sequence_number),
                                        since_sequence_number, excluded.since_sequence_number),
       epoch = coalesce(max(epoch, excluded.epoch), epoch, excluded.epoch), retired = excluded.retired,
       at_ms = excluded.at_ms;
INSERT INTO idempotency_key (warehouse_id, key, binding, answer, at_ms)
SELECT moved.warehouse_id, unhex(value ->> 'key', '-'), unhex(value ->> 'binding'), value ->> 'answer', value ->> 'at_ms'
  FROM attempt JOIN tabular moved ON moved.id = $1, json_each($10)
 WHERE attempt_id = $5 AND outcome = 'committed';
INSERT INTO commit_log (warehouse_id, table_uuid, id, namespace, name, at_ms, request_id, principal, idempotency_key,
                        snapshot_id, ref_name, writer_kind, writer_id, writer_part, position, outcome, attempt_id,
                        duplicate_of, detail, waited_ms, group_size, attempts)
SELECT unhex(value ->> 'warehouse_id', '-'), unhex(value ->> 'table_uuid', '-'), unhex(value ->> 'id', '-'),
       value ->> 'namespace', value ->> 'name', value ->> 'at_ms', value ->> 'request_id', value ->> 'principal',
       unhex(value ->> 'idempotency_key', '-'), value ->> 'snapshot_id', value ->> 'ref_name', value ->> 'writer_kind',
       value ->> 'writer_id', value ->> 'writer_part', value ->> 'position', value ->> 'outcome',
       unhex(value ->> 'attempt_id', '-'), value ->> 'duplicate_of', value ->> 'detail', value ->> 'waited_ms',
       value ->> 'group_size', value ->> 'attempts'
  FROM attempt, json_each($11)
 WHERE attempt.attempt_id = $5 AND attempt.outcome = 'committed'
ON CONFLICT (warehouse_id, table_uuid, id) DO NOTHING;
INSERT INTO outbox (warehouse_id, tabular_id, kind, table_uuid, namespace, name, what, metadata_location, snapshot_id,
                    ref_name, at_ms)
SELECT unhex(value ->> 'warehouse_id', '-'), unhex(value ->> 'tabular_id', '-'), value ->> 'kind',
       unhex(value ->> 'table_uuid', '-'), value ->> 'namespace', value ->> 'name', value ->> 'what',
       value ->> 'metadata_location', value ->> 'snapshot_id', value ->> 'ref_name', value ->> 'at_ms'
  FROM attempt, json_each($12)
 WHERE attempt_id = $5 AND outcome = 'committed' ORDER BY key;
INSERT INTO purge (id, warehouse_id, target, canonical_location, not_before_ms)
SELECT unhex(value ->> 'id', '-'), moved.warehouse_id, value ->> 'target', value ->> 'canonical_location',
       value ->> 'not_before_ms'
  FROM attempt JOIN tabular moved ON moved.id = $1, json_each($13)
 WHERE attempt_id = $5 AND outcome = 'committed';
SELECT count(*) FROM attempt WHERE attempt_id = $5 AND outcome = 'committed';
COMMIT;
