-- schema 9
;
-- $1 and $2 warehouse and UUID of the table; $3 a JSON array of the writers that are asked for, and $4 how many snapshots at a
-- position are told of each.
WITH wanted AS MATERIALIZED (
    SELECT DISTINCT value ->> 'place' AS place, value ->> 'ref_name' AS ref_name, value ->> 'ref_key' AS ref_key,
                    value ->> 'writer_kind' AS writer_kind, value ->> 'writer_id' AS writer_id,
                    value ->> 'writer_part' AS writer_part, value ->> 'position' AS position,
                    value ->> 'position_hash' AS position_hash
      FROM json_each($3)
)
SELECT (SELECT json_group_array(json_object(
                   'place', place, 'ref_name', ref_name, 'writer_kind', writer_kind, 'writer_id', writer_id,
                   'writer_part', writer_part, 'position', position, 'snapshot_id', snapshot_id,
                   'sequence_number', sequence_number, 'first_snapshot_id', first_snapshot_id,
                   'since_sequence_number', since_sequence_number, 'epoch', epoch,
                   'retired', json(iif(retired, 'true', 'false')), 'at_ms', at_ms))
          FROM writer
         WHERE warehouse_id = $1 AND table_uuid = $2 AND place IN (SELECT place FROM wanted)) AS "rows!: String",
       (SELECT json_group_array(json((
                   SELECT json_group_array(json_object(
                              'asked_ref', wanted.ref_name, 'snapshot_id', snapshot_id, 'parent_id', parent_id,
                              'sequence_number', sequence_number, 'ref_name', ref_name, 'class', class,
                              'writer_kind', writer_kind, 'writer_id', writer_id, 'writer_part', writer_part,
                              'position', position, 'counts', counts, 'epoch', epoch,
                              'is_first', json(iif(is_first, 'true', 'false')),
                              'rebased', json(iif(rebased, 'true', 'false')), 'position_hash', position_hash,
                              'at_ms', at_ms))
                     FROM (SELECT * FROM lineage l
                            WHERE l.warehouse_id = $1 AND l.table_uuid = $2
                              AND l.position_hash = wanted.position_hash AND l.position = wanted.position
                              AND l.writer_kind = wanted.writer_kind AND l.writer_id = wanted.writer_id
                              AND l.writer_part = wanted.writer_part
                              AND (l.ref_name = wanted.ref_name
                                   OR EXISTS (SELECT 1 FROM carried c
                                               WHERE c.warehouse_id = $1 AND c.table_uuid = $2
                                                 AND c.snapshot_id = l.snapshot_id AND c.ref_key = wanted.ref_key))
                            ORDER BY l.sequence_number DESC, l.at_ms DESC LIMIT $4))))
          FROM wanted) AS "same!: String"
;
-- $1 to $3 warehouse, namespace and name; $4 a JSON array of the snapshots that are asked for, $5 one of the writers that are,
-- and $6 how many snapshots at a position are told of each.
WITH wanted AS MATERIALIZED (
    SELECT DISTINCT value ->> 'place' AS place, value ->> 'ref_name' AS ref_name, value ->> 'ref_key' AS ref_key,
                    value ->> 'writer_kind' AS writer_kind, value ->> 'writer_id' AS writer_id,
                    value ->> 'writer_part' AS writer_part, value ->> 'position' AS position,
                    value ->> 'position_hash' AS position_hash
      FROM json_each($5)
)
SELECT t.id AS "id: Uuid", t.kind, t.uuid AS "uuid: Uuid", t.location, t.metadata_location, t.version,
       (SELECT json_group_array(l.snapshot_id) FROM lineage l
         WHERE l.warehouse_id = $1 AND l.table_uuid = t.uuid
           AND l.snapshot_id IN (SELECT value FROM json_each($4))) AS "landed!: String",
       (SELECT json_group_array(json_object(
                   'place', place, 'ref_name', ref_name, 'writer_kind', writer_kind, 'writer_id', writer_id,
                   'writer_part', writer_part, 'position', position, 'snapshot_id', snapshot_id,
                   'sequence_number', sequence_number, 'first_snapshot_id', first_snapshot_id,
                   'since_sequence_number', since_sequence_number, 'epoch', epoch,
                   'retired', json(iif(retired, 'true', 'false')), 'at_ms', at_ms))
          FROM writer
         WHERE warehouse_id = $1 AND table_uuid = t.uuid AND place IN (SELECT place FROM wanted)) AS "rows!: String",
       (SELECT json_group_array(json((
                   SELECT json_group_array(json_object(
                              'asked_ref', wanted.ref_name, 'snapshot_id', snapshot_id, 'parent_id', parent_id,
                              'sequence_number', sequence_number, 'ref_name', ref_name, 'class', class,
                              'writer_kind', writer_kind, 'writer_id', writer_id, 'writer_part', writer_part,
                              'position', position, 'counts', counts, 'epoch', epoch,
                              'is_first', json(iif(is_first, 'true', 'false')),
                              'rebased', json(iif(rebased, 'true', 'false')), 'position_hash', position_hash,
                              'at_ms', at_ms))
                     FROM (SELECT * FROM lineage l
                            WHERE l.warehouse_id = $1 AND l.table_uuid = t.uuid
                              AND l.position_hash = wanted.position_hash AND l.position = wanted.position
                              AND l.writer_kind = wanted.writer_kind AND l.writer_id = wanted.writer_id
                              AND l.writer_part = wanted.writer_part
                              AND (l.ref_name = wanted.ref_name
                                   OR EXISTS (SELECT 1 FROM carried c
                                               WHERE c.warehouse_id = $1 AND c.table_uuid = t.uuid
                                                 AND c.snapshot_id = l.snapshot_id AND c.ref_key = wanted.ref_key))
                            ORDER BY l.sequence_number DESC, l.at_ms DESC LIMIT $6))))
          FROM wanted) AS "same!: String"
  FROM tabular t JOIN namespace n ON n.id = t.namespace_id
 WHERE n.warehouse_id = $1 AND n.parts = $2 AND t.name = $3
;
DELETE FROM attempt WHERE attempt_id IN (
                 SELECT attempt_id FROM attempt WHERE at_ms < $1 ORDER BY at_ms LIMIT $2)
;
DELETE FROM carried WHERE (warehouse_id, table_uuid, snapshot_id) IN (
             SELECT warehouse_id, table_uuid, snapshot_id FROM lineage WHERE at_ms < $1
              ORDER BY at_ms, warehouse_id, table_uuid, snapshot_id LIMIT $2)
;
DELETE FROM commit_log WHERE (warehouse_id, table_uuid, id) IN (
                 SELECT warehouse_id, table_uuid, id FROM commit_log WHERE at_ms < $1 ORDER BY at_ms LIMIT $2)
;
DELETE FROM idempotency_key WHERE (warehouse_id, key) IN (
                 SELECT warehouse_id, key FROM idempotency_key
                  WHERE at_ms < $1 ORDER BY at_ms LIMIT $2)
;
DELETE FROM lineage WHERE (warehouse_id, table_uuid, snapshot_id) IN (
             SELECT warehouse_id, table_uuid, snapshot_id FROM lineage WHERE at_ms < $1
              ORDER BY at_ms, warehouse_id, table_uuid, snapshot_id LIMIT $2)
;
DELETE FROM lineage WHERE warehouse_id = $1
;
DELETE FROM namespace WHERE id = $1
;
DELETE FROM outbox WHERE serial IN (
                 SELECT serial FROM outbox WHERE at_ms < $1 ORDER BY at_ms LIMIT $2)
;
DELETE FROM purge WHERE id = $1
;
DELETE FROM tabular WHERE id = $1 AND version = $2
;
DELETE FROM warehouse WHERE id = $1
;
INSERT INTO attempt (attempt_id, outcome, at_ms) VALUES ($1, 'aborted', $2)
         ON CONFLICT (attempt_id) DO UPDATE SET resolutions = attempt.resolutions + 1
         RETURNING outcome
;
INSERT INTO attempt (attempt_id, outcome, at_ms) VALUES ($1, 'committed', $2)
         ON CONFLICT (attempt_id) DO NOTHING
;
INSERT INTO carried (warehouse_id, table_uuid, snapshot_id, ref_key)
         SELECT $1, $2, value ->> 'snapshot_id', value ->> 'ref_key'
           FROM json_each($3)
          WHERE true
         ON CONFLICT DO NOTHING
;
INSERT INTO commit_log (warehouse_id, table_uuid, id, namespace, name, at_ms, request_id, principal,
                                 idempotency_key, snapshot_id, ref_name, writer_kind, writer_id, writer_part, position,
                                 outcome, attempt_id, duplicate_of, detail, waited_ms, group_size, attempts)
         SELECT unhex(value ->> 'warehouse_id', '-'), unhex(value ->> 'table_uuid', '-'), unhex(value ->> 'id', '-'),
                value ->> 'namespace', value ->> 'name', value ->> 'at_ms', value ->> 'request_id',
                value ->> 'principal', unhex(value ->> 'idempotency_key', '-'), value ->> 'snapshot_id',
                value ->> 'ref_name', value ->> 'writer_kind', value ->> 'writer_id', value ->> 'writer_part',
                value ->> 'position', value ->> 'outcome', unhex(value ->> 'attempt_id', '-'),
                value ->> 'duplicate_of', value ->> 'detail', value ->> 'waited_ms', value ->> 'group_size',
                value ->> 'attempts'
           FROM json_each($1)
          WHERE true
         ON CONFLICT (warehouse_id, table_uuid, id) DO NOTHING
;
INSERT INTO idempotency_key (warehouse_id, key, binding, answer, at_ms)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (warehouse_id, key) DO NOTHING
;
INSERT INTO lineage (warehouse_id, table_uuid, snapshot_id, parent_id, sequence_number, ref_name, class,
                              writer_kind, writer_id, writer_part, position, counts, epoch, is_first, rebased,
                              position_hash, at_ms)
         SELECT $1, $2, value ->> 'snapshot_id', value ->> 'parent_id', value ->> 'sequence_number',
                value ->> 'ref_name', value ->> 'class', value ->> 'writer_kind', value ->> 'writer_id',
                value ->> 'writer_part', value ->> 'position', value ->> 'counts', value ->> 'epoch',
                value ->> 'is_first', value ->> 'rebased', value ->> 'position_hash', value ->> 'at_ms'
           FROM json_each($3)
          WHERE true
         ON CONFLICT (warehouse_id, table_uuid, snapshot_id) DO NOTHING
;
INSERT INTO namespace (id, warehouse_id, parent_id, name, parts, properties, created_at_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
;
INSERT INTO outbox (warehouse_id, tabular_id, kind, table_uuid, namespace, name, what, metadata_location,
                             snapshot_id, ref_name, at_ms)
         SELECT unhex(value ->> 'warehouse_id', '-'), unhex(value ->> 'tabular_id', '-'), value ->> 'kind',
                unhex(value ->> 'table_uuid', '-'), value ->> 'namespace', value ->> 'name', value ->> 'what',
                value ->> 'metadata_location', value ->> 'snapshot_id', value ->> 'ref_name', value ->> 'at_ms'
           FROM json_each($1) ORDER BY key
;
INSERT INTO purge (id, warehouse_id, target, canonical_location, not_before_ms)
             VALUES ($1, $2, $3, $4, $5)
;
INSERT INTO tabular (id, warehouse_id, namespace_id, name, kind, uuid, location, canonical_location,
                              metadata_location, version)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1)
;
INSERT INTO warehouse (id, name, root, canonical_root, allowed, storage, defaults, overrides, version, created_at_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
;
INSERT INTO writer (warehouse_id, table_uuid, place, ref_name, writer_kind, writer_id, writer_part, position,
                             snapshot_id, sequence_number, first_snapshot_id, since_sequence_number, epoch, retired,
                             at_ms)
         SELECT $1, $2, value ->> 'place', value ->> 'ref_name', value ->> 'writer_kind', value ->> 'writer_id',
                value ->> 'writer_part', value ->> 'position', value ->> 'snapshot_id', value ->> 'sequence_number',
                value ->> 'first_snapshot_id', value ->> 'since_sequence_number', value ->> 'epoch',
                value ->> 'retired', value ->> 'at_ms'
           FROM json_each($3)
          WHERE true
         ON CONFLICT (warehouse_id, table_uuid, place) DO UPDATE
            SET position = excluded.position, snapshot_id = excluded.snapshot_id,
                sequence_number = excluded.sequence_number,
                first_snapshot_id = coalesce(first_snapshot_id, excluded.first_snapshot_id),
                since_sequence_number = coalesce(max(since_sequence_number, excluded.since_sequence_number),
                                                 since_sequence_number, excluded.since_sequence_number),
                epoch = coalesce(max(epoch, excluded.epoch), epoch, excluded.epoch), retired = excluded.retired,
                at_ms = excluded.at_ms
          WHERE NOT $4
;
SELECT (SELECT count(*) FROM namespace WHERE warehouse_id = $1) AS "namespaces!: i64",
                  (SELECT count(*) FROM tabular WHERE warehouse_id = $1 AND kind = 'table') AS "tables!: i64",
                  (SELECT count(*) FROM tabular WHERE warehouse_id = $1 AND kind = 'view') AS "views!: i64"
;
SELECT (SELECT json_group_array(name)
                         FROM (SELECT child.name FROM namespace child
                                WHERE child.warehouse_id = $1 AND child.parent_id = parent.id AND child.name > $3
                                ORDER BY child.name LIMIT $4)) AS "names!: String"
                 FROM namespace parent
                WHERE parent.warehouse_id = $1 AND parent.parts = $2
;
SELECT (SELECT json_group_array(name)
                         FROM (SELECT t.name FROM tabular t
                                WHERE t.namespace_id = n.id AND t.kind = $3 AND t.name > $4
                                ORDER BY t.name LIMIT $5)) AS "names!: String"
                 FROM namespace n
                WHERE n.warehouse_id = $1 AND n.parts = $2
;
SELECT DISTINCT snapshot_id FROM lineage
              WHERE warehouse_id = $1 AND snapshot_id IN (SELECT value FROM json_each($3))
                AND ($2 IS NULL OR table_uuid = $2)
;
SELECT EXISTS (SELECT 1 FROM namespace WHERE parent_id = $1)
               OR EXISTS (SELECT 1 FROM tabular WHERE namespace_id = $1) AS "holds: bool"
;
SELECT EXISTS (SELECT 1 FROM purge
                           WHERE warehouse_id = $1 AND canonical_location IN (SELECT value FROM json_each($2)))
               OR EXISTS (SELECT 1 FROM purge
                           WHERE warehouse_id = $1 AND canonical_location >= $3 AND canonical_location < $4)
               AS "purging!: bool"
;
SELECT EXISTS (SELECT 1 FROM tabular WHERE id = $1 AND version = $2 AND metadata_location = $3) AS "unchanged: bool"
;
SELECT EXISTS (SELECT 1 FROM warehouse WHERE id = $1) AS "there!: bool"
;
SELECT EXISTS (SELECT 1 FROM warehouse WHERE name = $1) AS "taken!: bool"
;
SELECT binding, answer, at_ms FROM idempotency_key WHERE warehouse_id = $1 AND key = $2
;
SELECT id AS "id: Uuid" FROM namespace WHERE warehouse_id = $1 AND parts = $2
;
SELECT id AS "id: Uuid", name, root, allowed, storage, defaults, overrides, version
                 FROM warehouse WHERE name = $1
;
SELECT id AS "id: Uuid", name, root, allowed, storage, defaults, overrides, version
                 FROM warehouse WHERE name > $1 ORDER BY name LIMIT $2
;
SELECT id AS "id: Uuid", properties FROM namespace WHERE warehouse_id = $1 AND parts = $2
;
SELECT kind FROM tabular WHERE namespace_id = $1 AND name = $2 AND id <> $3
;
SELECT n.parts, t.name AS "name!", t.location AS "location!"
             FROM (SELECT namespace_id, name, location FROM tabular
                    WHERE warehouse_id = $1 AND kind = 'table'
                      AND canonical_location IN (SELECT value FROM json_each($2))
                      AND id IS NOT $5
                   UNION ALL
                   SELECT namespace_id, name, location FROM tabular
                    WHERE warehouse_id = $1 AND kind = 'table'
                      AND canonical_location >= $3 AND canonical_location < $4
                      AND id IS NOT $5) t
             JOIN namespace n ON n.id = t.namespace_id
            LIMIT 1
;
SELECT n.parts, t.name, t.location FROM tabular t JOIN namespace n ON n.id = t.namespace_id
          WHERE t.warehouse_id = $1 AND t.kind = $2 AND t.uuid = $3 AND t.id <> $4
;
SELECT name AS "name!" FROM warehouse
            WHERE canonical_root IN (SELECT value FROM json_each($1))
               OR (canonical_root >= $2 AND canonical_root < $3)
            ORDER BY name LIMIT 1
;
SELECT name FROM namespace
                  WHERE warehouse_id = $1 AND parent_id IS NULL AND name > $2
                  ORDER BY name LIMIT $3
;
SELECT p.id AS "id: Uuid", p.warehouse_id AS "warehouse_id: Uuid", p.target, p.not_before_ms, p.failures,
                  coalesce(p.root, w.root) AS "root!", coalesce(p.allowed, w.allowed) AS "allowed!",
                  coalesce(w.storage, p.storage) AS "storage!"
             FROM purge p LEFT JOIN warehouse w ON w.id = p.warehouse_id
            WHERE p.not_before_ms <= $1 AND (p.lease_until_ms IS NULL OR p.lease_until_ms <= $1)
            ORDER BY p.not_before_ms, p.id LIMIT 1
;
SELECT place, ref_name, writer_kind, writer_id, writer_part, position, snapshot_id, sequence_number,
                      first_snapshot_id, since_sequence_number, epoch, retired AS "retired: bool", at_ms
                 FROM writer
                WHERE warehouse_id = $1 AND table_uuid = $2 AND place > $3
                ORDER BY place LIMIT $4
;
SELECT place, ref_name, writer_kind, writer_id, writer_part, position, snapshot_id, sequence_number,
                      first_snapshot_id, since_sequence_number, epoch, retired AS "retired: bool", at_ms
                 FROM writer
                WHERE warehouse_id = $1 AND table_uuid = $2 AND writer_id = $3
                  AND ($4 IS NULL OR ref_name = $4) AND ($5 IS NULL OR writer_kind = $5)
                  AND ($6 IS NULL OR writer_part = $6)
                ORDER BY place LIMIT $7
;
SELECT properties FROM namespace WHERE warehouse_id = $1 AND parts = $2
;
SELECT serial, warehouse_id AS "warehouse_id: Uuid", tabular_id AS "tabular_id: Uuid", kind,
                      table_uuid AS "table_uuid: Uuid", namespace, name, what, metadata_location, snapshot_id, ref_name,
                      at_ms
                 FROM outbox WHERE serial > $1 ORDER BY serial LIMIT $2
;
SELECT t.id AS "id: Uuid", t.kind, t.uuid AS "uuid: Uuid", t.location, t.metadata_location, t.version
                 FROM tabular t JOIN namespace n ON n.id = t.namespace_id
                WHERE n.warehouse_id = $1 AND n.parts = $2 AND t.name = $3
;
SELECT warehouse_id AS "warehouse_id: Uuid", table_uuid AS "table_uuid: Uuid", id AS "id: Uuid", namespace,
                      name, at_ms, request_id, principal, idempotency_key AS "idempotency_key: Uuid", snapshot_id,
                      ref_name, writer_kind, writer_id, writer_part, position, outcome,
                      attempt_id AS "attempt_id: Uuid", duplicate_of, detail, waited_ms, group_size, attempts
                 FROM commit_log
                WHERE warehouse_id = $1 AND table_uuid = $2 AND id < $3
                ORDER BY id DESC LIMIT $4
;
SELECT warehouse_id AS "warehouse_id: Uuid", table_uuid AS "table_uuid: Uuid", id AS "id: Uuid", namespace,
                      name, at_ms, request_id, principal, idempotency_key AS "idempotency_key: Uuid", snapshot_id,
                      ref_name, writer_kind, writer_id, writer_part, position, outcome,
                      attempt_id AS "attempt_id: Uuid", duplicate_of, detail, waited_ms, group_size, attempts
                 FROM commit_log
                WHERE warehouse_id = $1 AND table_uuid = $2 AND idempotency_key = $3
                ORDER BY id DESC LIMIT $4
;
SELECT warehouse_id AS "warehouse_id: Uuid", table_uuid AS "table_uuid: Uuid", id AS "id: Uuid", namespace,
                      name, at_ms, request_id, principal, idempotency_key AS "idempotency_key: Uuid", snapshot_id,
                      ref_name, writer_kind, writer_id, writer_part, position, outcome,
                      attempt_id AS "attempt_id: Uuid", duplicate_of, detail, waited_ms, group_size, attempts
                 FROM commit_log
                WHERE warehouse_id = $1 AND table_uuid = $2 AND snapshot_id = $3
                ORDER BY id DESC LIMIT $4
;
UPDATE lineage SET class = new.value ->> 1
               FROM json_each($3) AS new
              WHERE warehouse_id = $1 AND table_uuid = $2 AND snapshot_id = new.value ->> 0 AND class IS NULL
;
UPDATE namespace SET properties = $2 WHERE id = $1
;
UPDATE purge
                SET not_before_ms = $2, lease_until_ms = NULL, failures = failures + 1, last_error = $3
              WHERE id = $1
;
UPDATE purge SET (root, canonical_root, allowed, storage) =
                          (SELECT coalesce(purge.root, w.root), coalesce(purge.canonical_root, w.canonical_root),
                                  coalesce(purge.allowed, w.allowed), w.storage
                             FROM warehouse w WHERE w.id = $1)
          WHERE warehouse_id = $1
;
UPDATE purge SET lease_until_ms = $2 WHERE id = $1
;
UPDATE purge SET warehouse_id = $1
          WHERE root IS NOT NULL
            AND (canonical_location IN (SELECT value FROM json_each($2))
                 OR (canonical_location >= $3 AND canonical_location < $4)
                 OR (NOT EXISTS (SELECT 1 FROM warehouse w WHERE w.id = purge.warehouse_id)
                     AND (canonical_root IN (SELECT value FROM json_each($2))
                          OR (canonical_root >= $3 AND canonical_root < $4))))
;
UPDATE tabular
            SET version = version + 1, metadata_location = $3, uuid = $4, location = $5, canonical_location = $6
          WHERE id = $1 AND version = $2
;
UPDATE tabular SET namespace_id = $3, name = $4, version = version + 1 WHERE id = $1 AND version = $2
;
UPDATE warehouse SET allowed = $3, storage = $4, defaults = $5, overrides = $6, version = version + 1
              WHERE id = $1 AND version = $2
;
WITH RECURSIVE walk AS (
                   SELECT l.*, 1 AS step FROM lineage l
                    WHERE l.warehouse_id = $1 AND l.table_uuid = $2 AND l.snapshot_id = $3
                      AND $6 > 0
                   UNION ALL
                   SELECT l.*, walk.step + 1 FROM walk JOIN lineage l
                       ON l.warehouse_id = $1 AND l.table_uuid = $2 AND l.snapshot_id = walk.parent_id
                    WHERE walk.snapshot_id IS NOT $4 AND walk.sequence_number >= $5 AND walk.step < $6
               )
               SELECT snapshot_id AS "snapshot_id!", parent_id, sequence_number AS "sequence_number!", ref_name, class,
                      writer_kind, writer_id, writer_part, position, counts, epoch, is_first AS "is_first!: bool",
                      rebased AS "rebased!: bool", position_hash, at_ms AS "at_ms!"
                 FROM walk ORDER BY step
