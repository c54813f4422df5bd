-- Warehouses that are made, changed and deleted while the catalog is served: what their clients are told, a version, so
-- that no change overwrites another unseen, and roots that can be compared, for they must not overlap.

ALTER TABLE warehouse
    -- JSON: maps of strings.
    ADD COLUMN defaults       text NOT NULL DEFAULT '{}',
    ADD COLUMN overrides      text NOT NULL DEFAULT '{}',
    ADD COLUMN version        bigint NOT NULL DEFAULT 1,
    -- The root with one spelling for all aliases of a scheme, as in `tabular`.
    ADD COLUMN canonical_root text COLLATE "C";

UPDATE warehouse SET canonical_root = regexp_replace(root, '^s3[an]:', 's3:');

ALTER TABLE warehouse
    ALTER COLUMN canonical_root SET NOT NULL,
    ALTER COLUMN defaults DROP DEFAULT,
    ALTER COLUMN overrides DROP DEFAULT;

CREATE INDEX warehouse_root ON warehouse (canonical_root);

-- Purges outlive their warehouse: when it is deleted, they get a copy of where it lay and how it was reached, which is
-- gone with the last of them.
ALTER TABLE purge
    DROP CONSTRAINT purge_warehouse_id_fkey,
    ADD COLUMN root           text,
    ADD COLUMN canonical_root text COLLATE "C",
    ADD COLUMN allowed        text,
    ADD COLUMN storage        text;
