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
                            ORDER BY l.sequence_number DESC, l.at_ms DESC LIMIT +$4))))
          FROM wanted) AS "same!: String"
