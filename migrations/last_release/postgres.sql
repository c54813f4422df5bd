-- schema 9
;
-- $1 to $3 warehouse, namespace and name; $4 the snapshots that are asked for; $5 a JSON array of the writers that are, and $6
-- how many snapshots at a position are told of each.
WITH pointer AS MATERIALIZED (
    SELECT t.id, t.kind, t.uuid, t.location, t.metadata_location, t.version
      FROM tabular t JOIN namespace n ON n.id = t.namespace_id
     WHERE n.warehouse_id = $1 AND n.parts = $2 AND t.name = $3
), wanted AS MATERIALIZED (
    SELECT DISTINCT * FROM json_to_recordset($5::text::json)
        AS wanted (place text, ref_name text, ref_key text, writer_kind text, writer_id text, writer_part text,
                   position text, position_hash bigint)
), same AS (
    SELECT wanted.ref_name AS asked_ref, its.*
      FROM pointer, wanted, LATERAL (
           SELECT * FROM lineage l
            WHERE l.warehouse_id = $1 AND l.table_uuid = pointer.uuid AND l.position_hash = wanted.position_hash
              AND l.position = wanted.position AND l.writer_kind = wanted.writer_kind
              AND l.writer_id = wanted.writer_id AND l.writer_part = wanted.writer_part
              AND (l.ref_name = wanted.ref_name
                   OR EXISTS (SELECT FROM carried c
                               WHERE c.warehouse_id = $1 AND c.table_uuid = pointer.uuid
                                 AND c.snapshot_id = l.snapshot_id AND c.ref_key = wanted.ref_key))
            ORDER BY l.sequence_number DESC, l.at_ms DESC LIMIT $6) its
)
SELECT id, kind, uuid, location, metadata_location, version,
       ARRAY(SELECT l.snapshot_id FROM lineage l
              WHERE l.warehouse_id = $1 AND l.table_uuid = pointer.uuid AND l.snapshot_id = ANY($4)) AS "landed!",
       coalesce((SELECT json_agg(w) FROM writer w
                  WHERE w.warehouse_id = $1 AND w.table_uuid = pointer.uuid
                    AND w.place IN (SELECT place FROM wanted)), '[]')::text AS "rows!",
       coalesce((SELECT json_agg(same) FROM same), '[]')::text AS "same!"
  FROM pointer
;
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
;
DELETE FROM attempt WHERE ctid = ANY(ARRAY(
                 SELECT ctid FROM attempt WHERE at_ms < $1 ORDER BY at_ms LIMIT $2 FOR UPDATE SKIP LOCKED))
;
DELETE FROM commit_log WHERE ctid = ANY(ARRAY(
                 SELECT ctid FROM commit_log WHERE at_ms < $1 ORDER BY at_ms LIMIT $2 FOR UPDATE SKIP LOCKED))
;
DELETE FROM idempotency_key WHERE ctid = ANY(ARRAY(
                 SELECT ctid FROM idempotency_key WHERE at_ms < $1 ORDER BY at_ms LIMIT $2 FOR UPDATE SKIP LOCKED))
;
DELETE FROM lineage WHERE warehouse_id = $1
;
DELETE FROM outbox WHERE ctid = ANY(ARRAY(
                 SELECT ctid FROM outbox WHERE at_ms < $1 ORDER BY at_ms LIMIT $2 FOR UPDATE SKIP LOCKED))
;
DELETE FROM purge WHERE id = $1
;
DELETE FROM tabular WHERE id = $1 AND version = $2
;
DELETE FROM warehouse WHERE id = $1 RETURNING root, canonical_root, allowed, storage
;
INSERT INTO attempt (attempt_id, outcome, at_ms) VALUES ($1, 'aborted', $2)
         ON CONFLICT (attempt_id) DO UPDATE SET resolutions = attempt.resolutions + 1
         RETURNING outcome
;
INSERT INTO attempt (attempt_id, outcome, at_ms) VALUES ($1, 'committed', $2)
;
INSERT INTO carried (warehouse_id, table_uuid, snapshot_id, ref_key)
         SELECT $1, $2, new.*
           FROM json_to_recordset($3::text::json) AS new (snapshot_id bigint, ref_key text)
          ORDER BY new.snapshot_id, new.ref_key
         ON CONFLICT DO NOTHING
;
INSERT INTO commit_log (warehouse_id, table_uuid, id, namespace, name, at_ms, request_id, principal,
                                 idempotency_key, snapshot_id, ref_name, writer_kind, writer_id, writer_part, position,
                                 outcome, attempt_id, duplicate_of, detail, waited_ms, group_size, attempts)
         SELECT new.*
           FROM json_to_recordset($1::text::json)
                AS new (warehouse_id uuid, table_uuid uuid, id uuid, namespace text, name text, at_ms bigint,
                        request_id text, principal text, idempotency_key uuid, snapshot_id bigint, ref_name text,
                        writer_kind text, writer_id text, writer_part text, position text, outcome text,
                        attempt_id uuid, duplicate_of bigint, detail text, waited_ms bigint, group_size bigint,
                        attempts bigint)
         ON CONFLICT DO NOTHING
;
INSERT INTO idempotency_key (warehouse_id, key, binding, answer, at_ms)
         VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (warehouse_id, key) DO NOTHING
;
INSERT INTO lineage (warehouse_id, table_uuid, snapshot_id, parent_id, sequence_number, ref_name, class,
                              writer_kind, writer_id, writer_part, position, counts, epoch, is_first, rebased,
                              position_hash, at_ms)
         SELECT $1, $2, new.*
           FROM json_to_recordset($3::text::json)
                AS new (snapshot_id bigint, parent_id bigint, sequence_number bigint, ref_name text, class text,
                        writer_kind text, writer_id text, writer_part text, position text, counts text, epoch bigint,
                        is_first boolean, rebased boolean, position_hash bigint, at_ms bigint)
          ORDER BY new.snapshot_id
         ON CONFLICT (warehouse_id, table_uuid, snapshot_id) DO NOTHING
;
INSERT INTO outbox (warehouse_id, tabular_id, kind, table_uuid, namespace, name, what, metadata_location,
                             snapshot_id, ref_name, at_ms)
         SELECT new.*
           FROM json_to_recordset($1::text::json)
                AS new (warehouse_id uuid, tabular_id uuid, kind text, table_uuid uuid, namespace text, name text,
                        what text, metadata_location text, snapshot_id bigint, ref_name text, at_ms bigint)
;
INSERT INTO purge (id, warehouse_id, target, canonical_location, not_before_ms)
             VALUES ($1, $2, $3, $4, $5)
;
INSERT INTO tabular (id, warehouse_id, namespace_id, name, kind, uuid, location, canonical_location,
                              metadata_location, version)
         SELECT $1, $2, n.id, $4, $5, $6, $7, $8, $9, 1
           FROM namespace n WHERE n.warehouse_id = $2 AND n.parts = $3
;
INSERT INTO warehouse (id, name, root, canonical_root, allowed, storage, defaults, overrides, version, created_at_ms)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         ON CONFLICT (name) DO NOTHING
;
INSERT INTO writer (warehouse_id, table_uuid, place, ref_name, writer_kind, writer_id, writer_part, position,
                             snapshot_id, sequence_number, first_snapshot_id, since_sequence_number, epoch, retired,
                             at_ms)
         SELECT $1, $2, new.*
           FROM json_to_recordset($3::text::json)
                AS new (place text, ref_name text, writer_kind text, writer_id text, writer_part text, position text,
                        snapshot_id bigint, sequence_number bigint, first_snapshot_id bigint,
                        since_sequence_number bigint, epoch bigint, retired boolean, at_ms bigint)
         ON CONFLICT ON CONSTRAINT writer_once DO UPDATE
            SET position = excluded.position, snapshot_id = excluded.snapshot_id,
                sequence_number = excluded.sequence_number,
                first_snapshot_id = coalesce(writer.first_snapshot_id, excluded.first_snapshot_id),
                since_sequence_number = greatest(writer.since_sequence_number, excluded.since_sequence_number),
                epoch = greatest(writer.epoch, excluded.epoch), retired = excluded.retired, at_ms = excluded.at_ms
          WHERE NOT $4
;
LOCK TABLE warehouse IN SHARE ROW EXCLUSIVE MODE
;
SELECT (SELECT count(*) FROM namespace WHERE warehouse_id = $1) AS "namespaces!",
                  (SELECT count(*) FROM tabular WHERE warehouse_id = $1 AND kind = 'table') AS "tables!",
                  (SELECT count(*) FROM tabular WHERE warehouse_id = $1 AND kind = 'view') AS "views!"
;
SELECT ARRAY(SELECT child.name FROM namespace child
                             WHERE child.warehouse_id = $1 AND child.parent_id = parent.id AND child.name > $3
                             ORDER BY child.name LIMIT $4) AS "names!"
                 FROM namespace parent
                WHERE parent.warehouse_id = $1 AND parent.parts = $2
;
SELECT ARRAY(SELECT t.name FROM tabular t
                             WHERE t.namespace_id = n.id AND t.kind = $3 AND t.name > $4
                             ORDER BY t.name LIMIT $5) AS "names!"
                 FROM namespace n
                WHERE n.warehouse_id = $1 AND n.parts = $2
;
SELECT DISTINCT snapshot_id FROM lineage
              WHERE warehouse_id = $1 AND snapshot_id = ANY($3) AND ($2::uuid IS NULL OR table_uuid = $2)
;
SELECT EXISTS (SELECT FROM purge WHERE warehouse_id = $1 AND canonical_location = ANY($2))
               OR EXISTS (SELECT FROM purge
                           WHERE warehouse_id = $1 AND canonical_location >= $3 AND canonical_location < $4)
               AS "purging!"
;
SELECT binding, answer, at_ms FROM idempotency_key WHERE warehouse_id = $1 AND key = $2
;
SELECT id FROM warehouse WHERE id = $1 FOR NO KEY UPDATE
;
SELECT id, name, root, allowed, storage, defaults, overrides, version
               FROM warehouse WHERE name > $1 ORDER BY name LIMIT $2
;
SELECT id, name, root, allowed, storage, defaults, overrides, version FROM warehouse WHERE name = $1
;
SELECT id, properties FROM namespace WHERE warehouse_id = $1 AND parts = $2 FOR NO KEY UPDATE
;
SELECT id, version, metadata_location FROM tabular WHERE id = ANY($1) ORDER BY id FOR UPDATE
;
SELECT n.parts, t.name AS "name!", t.location AS "location!"
             FROM (SELECT namespace_id, name, location FROM tabular
                    WHERE warehouse_id = $1 AND kind = 'table' AND canonical_location = ANY($2)
                      AND id IS DISTINCT FROM $5
                   UNION ALL
                   SELECT namespace_id, name, location FROM tabular
                    WHERE warehouse_id = $1 AND kind = 'table'
                      AND canonical_location >= $3 AND canonical_location < $4
                      AND id IS DISTINCT FROM $5) t
             JOIN namespace n ON n.id = t.namespace_id
            LIMIT 1
;
SELECT n.parts, t.name FROM tabular t JOIN namespace n ON n.id = t.namespace_id
          WHERE t.warehouse_id = $1 AND t.kind = $2 AND t.uuid = $3
;
SELECT name AS "name!" FROM pg_settings
            WHERE name = ANY($1) AND setting = '0' AND (inet_client_addr() IS NOT NULL OR name NOT LIKE 'tcp%')
            ORDER BY name
;
SELECT name FROM namespace
                  WHERE warehouse_id = $1 AND parent_id IS NULL AND name > $2
                  ORDER BY parent_id, name LIMIT $3
;
SELECT name FROM warehouse
          WHERE canonical_root = ANY($1) OR (canonical_root >= $2 AND canonical_root < $3)
          ORDER BY name LIMIT 1
;
SELECT place, ref_name, writer_kind, writer_id, writer_part, position, snapshot_id, sequence_number,
                    first_snapshot_id, since_sequence_number, epoch, retired, at_ms
               FROM writer
              WHERE warehouse_id = $1 AND table_uuid = $2 AND place > $3
              ORDER BY place LIMIT $4
;
SELECT place, ref_name, writer_kind, writer_id, writer_part, position, snapshot_id, sequence_number,
                    first_snapshot_id, since_sequence_number, epoch, retired, at_ms
               FROM writer
              WHERE warehouse_id = $1 AND table_uuid = $2 AND writer_id = $3
                AND ($4::text IS NULL OR ref_name = $4) AND ($5::text IS NULL OR writer_kind = $5)
                AND ($6::text IS NULL OR writer_part = $6)
              ORDER BY place LIMIT $7
;
SELECT properties FROM namespace WHERE warehouse_id = $1 AND parts = $2
;
SELECT t.id, t.kind, t.uuid, t.location, t.metadata_location, t.version
               FROM tabular t JOIN namespace n ON n.id = t.namespace_id
              WHERE n.warehouse_id = $1 AND n.parts = $2 AND t.name = $3
;
SELECT t.kind FROM tabular t JOIN namespace n ON n.id = t.namespace_id
          WHERE n.warehouse_id = $1 AND n.parts = $2 AND t.name = $3
;
SELECT warehouse_id, table_uuid, id, namespace, name, at_ms, request_id, principal, idempotency_key,
                    snapshot_id, ref_name, writer_kind, writer_id, writer_part, position, outcome, attempt_id, duplicate_of,
                    detail, waited_ms, group_size, attempts
               FROM commit_log
              WHERE warehouse_id = $1 AND table_uuid = $2 AND id < $3
              ORDER BY id DESC LIMIT $4
;
SELECT warehouse_id, table_uuid, id, namespace, name, at_ms, request_id, principal, idempotency_key,
                    snapshot_id, ref_name, writer_kind, writer_id, writer_part, position, outcome, attempt_id, duplicate_of,
                    detail, waited_ms, group_size, attempts
               FROM commit_log
              WHERE warehouse_id = $1 AND table_uuid = $2 AND idempotency_key = $3
              ORDER BY id DESC LIMIT $4
;
SELECT warehouse_id, table_uuid, id, namespace, name, at_ms, request_id, principal, idempotency_key,
                    snapshot_id, ref_name, writer_kind, writer_id, writer_part, position, outcome, attempt_id, duplicate_of,
                    detail, waited_ms, group_size, attempts
               FROM commit_log
              WHERE warehouse_id = $1 AND table_uuid = $2 AND snapshot_id = $3
              ORDER BY id DESC LIMIT $4
;
SELECT xid::text AS "xid!", serial, warehouse_id, tabular_id, kind, table_uuid, namespace, name, what,
                      metadata_location, snapshot_id, ref_name, at_ms
                 FROM outbox
                WHERE (xid, serial) > ($1::text::xid8, $2) AND xid < pg_snapshot_xmin(pg_current_snapshot())
                ORDER BY outbox.xid, serial LIMIT $3
;
UPDATE namespace SET properties = $2 WHERE id = $1
;
UPDATE purge
                SET not_before_ms = $2, lease_until_ms = NULL, failures = failures + 1, last_error = $3
              WHERE id = $1
;
UPDATE purge SET root = coalesce(root, $2), canonical_root = coalesce(canonical_root, $3),
                          allowed = coalesce(allowed, $4), storage = $5
          WHERE warehouse_id = $1
;
UPDATE purge SET warehouse_id = $1
          WHERE root IS NOT NULL
            AND (canonical_location = ANY($2) OR (canonical_location >= $3 AND canonical_location < $4)
                 OR (NOT EXISTS (SELECT 1 FROM warehouse w WHERE w.id = purge.warehouse_id)
                     AND (canonical_root = ANY($2) OR (canonical_root >= $3 AND canonical_root < $4))))
;
UPDATE tabular
            SET version = version + 1, metadata_location = $3, uuid = $4, location = $5, canonical_location = $6
          WHERE id = $1 AND version = $2
;
UPDATE tabular SET namespace_id = n.id, name = $5, version = version + 1
           FROM namespace n
          WHERE tabular.id = $1 AND version = $2 AND n.warehouse_id = $3 AND n.parts = $4
;
UPDATE warehouse SET allowed = $3, storage = $4, defaults = $5, overrides = $6, version = version + 1
              WHERE id = $1 AND version = $2
;
WITH RECURSIVE walk AS (
                   SELECT l.*, 1::bigint AS step FROM lineage l
                    WHERE l.warehouse_id = $1 AND l.table_uuid = $2 AND l.snapshot_id = $3
                      AND $6::bigint > 0
                   UNION ALL
                   SELECT l.*, walk.step + 1 FROM walk JOIN lineage l
                       ON l.warehouse_id = $1 AND l.table_uuid = $2 AND l.snapshot_id = walk.parent_id
                    WHERE walk.snapshot_id IS DISTINCT FROM $4 AND walk.sequence_number >= $5 AND walk.step < $6
               )
               SELECT snapshot_id AS "snapshot_id!", parent_id, sequence_number AS "sequence_number!", ref_name, class,
                      writer_kind, writer_id, writer_part, position, counts, epoch, is_first AS "is_first!",
                      rebased AS "rebased!", position_hash, at_ms AS "at_ms!"
                 FROM walk ORDER BY step
;
WITH claimed AS (
                   UPDATE purge SET lease_until_ms = $2
                    WHERE id = (SELECT id FROM purge
                                 WHERE not_before_ms <= $1 AND (lease_until_ms IS NULL OR lease_until_ms <= $1)
                                 ORDER BY not_before_ms, id LIMIT 1 FOR UPDATE SKIP LOCKED)
                   RETURNING id, warehouse_id, target, not_before_ms, failures, root, allowed, storage
               )
               SELECT c.id, c.warehouse_id, c.target, c.not_before_ms, c.failures,
                      coalesce(c.root, w.root) AS "root!", coalesce(c.allowed, w.allowed) AS "allowed!",
                      coalesce(w.storage, c.storage) AS "storage!"
                 FROM claimed c LEFT JOIN warehouse w ON w.id = c.warehouse_id
;
WITH gone AS (
             DELETE FROM namespace WHERE warehouse_id = $1 AND parts = $2 RETURNING id
         ), kept AS (
             INSERT INTO idempotency_key (warehouse_id, key, binding, answer, at_ms)
             SELECT $1, $3, $4, $5, $6 FROM gone WHERE $3::uuid IS NOT NULL
         )
         SELECT id FROM gone
;
WITH old AS (
                   SELECT ctid, warehouse_id, table_uuid, snapshot_id FROM lineage
                    WHERE at_ms < $1 ORDER BY at_ms LIMIT $2 FOR UPDATE SKIP LOCKED
               ), uncarried AS (
                   DELETE FROM carried WHERE ctid = ANY(ARRAY(
                       SELECT its.ctid FROM old, LATERAL (
                           SELECT c.ctid FROM carried c
                            WHERE c.warehouse_id = old.warehouse_id AND c.table_uuid = old.table_uuid
                              AND c.snapshot_id = old.snapshot_id
                           OFFSET 0) its))
               ), gone AS (
                   DELETE FROM lineage WHERE ctid = ANY(ARRAY(SELECT ctid FROM old)) RETURNING snapshot_id
               )
               SELECT count(*) AS "gone!" FROM gone
;
WITH parent AS (
             SELECT id FROM namespace WHERE warehouse_id = $2 AND parts = $3
             UNION ALL
             SELECT NULL WHERE $3::text[] IS NULL
         ), made AS (
             INSERT INTO namespace (id, warehouse_id, parent_id, name, parts, properties, created_at_ms)
             SELECT $1, $2, parent.id, $4, $5, $6, $7 FROM parent
             RETURNING id
         ), kept AS (
             INSERT INTO idempotency_key (warehouse_id, key, binding, answer, at_ms)
             SELECT $2, $8, $9, $10, $7 FROM made WHERE $8::uuid IS NOT NULL
         )
         SELECT id FROM made
;
WITH unclassified AS (
                 SELECT snapshot_id FROM lineage
                  WHERE warehouse_id = $1 AND table_uuid = $2 AND snapshot_id = ANY($3) AND class IS NULL
                    FOR UPDATE SKIP LOCKED
             )
             UPDATE lineage l SET class = new.class
               FROM unclassified JOIN unnest($3::bigint[], $4::text[]) AS new (snapshot_id, class) USING (snapshot_id)
              WHERE l.warehouse_id = $1 AND l.table_uuid = $2 AND l.snapshot_id = new.snapshot_id
;
WITH wanted AS MATERIALIZED (
                   SELECT DISTINCT * FROM json_to_recordset($3::text::json)
                       AS wanted (place text, ref_name text, ref_key text, writer_kind text, writer_id text,
                                  writer_part text, position text, position_hash bigint)
               ), same AS (
                   SELECT wanted.ref_name AS asked_ref, its.*
                     FROM wanted, LATERAL (
                          SELECT * FROM lineage l
                           WHERE l.warehouse_id = $1 AND l.table_uuid = $2 AND l.position_hash = wanted.position_hash
                             AND l.position = wanted.position AND l.writer_kind = wanted.writer_kind
                             AND l.writer_id = wanted.writer_id AND l.writer_part = wanted.writer_part
                             AND (l.ref_name = wanted.ref_name
                                  OR EXISTS (SELECT FROM carried c
                                              WHERE c.warehouse_id = $1 AND c.table_uuid = $2
                                                AND c.snapshot_id = l.snapshot_id AND c.ref_key = wanted.ref_key))
                           ORDER BY l.sequence_number DESC, l.at_ms DESC LIMIT $4) its
               )
               SELECT coalesce((SELECT json_agg(w) FROM writer w
                                 WHERE w.warehouse_id = $1 AND w.table_uuid = $2
                                   AND w.place IN (SELECT place FROM wanted)), '[]')::text AS "rows!",
                      coalesce((SELECT json_agg(same) FROM same), '[]')::text AS "same!"
