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
                            ORDER BY l.sequence_number DESC, l.at_ms DESC LIMIT +$6))))
          FROM wanted) AS "same!: String"
  FROM tabular t JOIN namespace n ON n.id = t.namespace_id
 WHERE n.warehouse_id = $1 AND n.parts = $2 AND t.name = $3
