-- Tables and views: one name space, one row each, which is the pointer to the current metadata file.

CREATE TABLE tabular (
    id                 uuid PRIMARY KEY,
    warehouse_id       uuid NOT NULL REFERENCES warehouse (id),
    namespace_id       uuid NOT NULL CONSTRAINT tabular_namespace REFERENCES namespace (id) ON DELETE RESTRICT,
    name               text COLLATE "C" NOT NULL,
    kind               text NOT NULL CHECK (kind IN ('table', 'view')),
    -- Of the metadata document; `id` is the catalog's own.
    uuid               uuid NOT NULL,
    location           text NOT NULL,
    -- The location with one spelling for all aliases of a scheme: the same place is the same text.
    canonical_location text COLLATE "C" NOT NULL,
    metadata_location  text NOT NULL,
    version            bigint NOT NULL,
    CONSTRAINT tabular_name UNIQUE (namespace_id, name)
)
-- A move of the pointer changes no indexed column: with room on its page it stays there (HOT). So no index may ever
-- name metadata_location or version.
WITH (fillfactor = 60);

CREATE UNIQUE INDEX tabular_table_uuid ON tabular (warehouse_id, uuid) WHERE kind = 'table';
CREATE UNIQUE INDEX tabular_view_uuid ON tabular (warehouse_id, uuid) WHERE kind = 'view';

-- Overlaps: equality for what lies above, a range for what lies below. Views own no place.
CREATE INDEX tabular_place ON tabular (warehouse_id, canonical_location) WHERE kind = 'table';
