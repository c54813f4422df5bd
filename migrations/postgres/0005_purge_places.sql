-- A register must not take over files that are being deleted: it looks for purges whose place overlaps with its own.

-- Of a table that is purged, with one spelling for all aliases of a scheme, as in `tabular`; NULL for a single file.
ALTER TABLE purge ADD COLUMN canonical_location text COLLATE "C";

UPDATE purge SET canonical_location = regexp_replace(target::json ->> 'location', '^s3[an]:', 's3:')
 WHERE target::json ->> 'what' = 'table';

CREATE INDEX purge_place ON purge (warehouse_id, canonical_location) WHERE canonical_location IS NOT NULL;
