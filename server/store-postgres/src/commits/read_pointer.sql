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
