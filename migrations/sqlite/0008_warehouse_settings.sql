-- Warehouses that are made, changed and deleted while the catalog is served: what their clients are told, a version, so
-- that no change overwrites another unseen, and roots that can be compared, for they must not overlap.

-- JSON: maps of strings.
ALTER TABLE warehouse ADD COLUMN defaults text NOT NULL DEFAULT '{}';
ALTER TABLE warehouse ADD COLUMN overrides text NOT NULL DEFAULT '{}';
ALTER TABLE warehouse ADD COLUMN version integer NOT NULL DEFAULT 1;
-- The root with one spelling for all aliases of a scheme, as in `tabular`.
ALTER TABLE warehouse ADD COLUMN canonical_root text NOT NULL DEFAULT '';

UPDATE warehouse
   SET canonical_root = CASE WHEN root GLOB 's3[an]:*' THEN 's3' || substr(root, 4) ELSE root END;

CREATE INDEX warehouse_root ON warehouse (canonical_root);

-- Purges outlive their warehouse: when it is deleted, they get a copy of where it lay and how it was reached, which is
-- gone with the last of them. A table of SQLite loses a foreign key only when it is made anew.
CREATE TABLE purge_of_any (
    id                 blob PRIMARY KEY NOT NULL,
    warehouse_id       blob NOT NULL,
    -- JSON.
    target             text NOT NULL,
    not_before_ms      integer NOT NULL,
    -- Until then somebody works on it; a holder that dies loses it then.
    lease_until_ms     integer,
    failures           integer NOT NULL DEFAULT 0,
    last_error         text,
    -- Of a table that is purged, with one spelling for all aliases of a scheme, as in `tabular`; NULL for a single file.
    canonical_location text,
    -- Of a warehouse that was deleted.
    root               text,
    canonical_root     text,
    allowed            text,
    storage            text
) STRICT;

INSERT INTO purge_of_any (id, warehouse_id, target, not_before_ms, lease_until_ms, failures, last_error, canonical_location)
SELECT id, warehouse_id, target, not_before_ms, lease_until_ms, failures, last_error, canonical_location FROM purge;

DROP TABLE purge;
ALTER TABLE purge_of_any RENAME TO purge;

CREATE INDEX purge_due ON purge (not_before_ms, id);
CREATE INDEX purge_place ON purge (warehouse_id, canonical_location) WHERE canonical_location IS NOT NULL;
