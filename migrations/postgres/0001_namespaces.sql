-- Warehouses and their namespaces: what every other row hangs on.
--
-- Names are compared by their bytes (COLLATE "C") whatever the locale of the database, so that both stores list and
-- page alike. JSON is kept as text: nothing here looks into it, and jsonb takes no \u0000.

CREATE TABLE warehouse (
    id            uuid PRIMARY KEY,
    name          text COLLATE "C" NOT NULL CONSTRAINT warehouse_name UNIQUE,
    root          text NOT NULL,
    -- JSON: further locations, and the storage settings.
    allowed       text NOT NULL,
    storage       text NOT NULL,
    created_at_ms bigint NOT NULL
);

-- A namespace is found by its levels and listed by its parent. Names never change, so the two always agree.
CREATE TABLE namespace (
    id            uuid PRIMARY KEY,
    warehouse_id  uuid NOT NULL REFERENCES warehouse (id),
    parent_id     uuid CONSTRAINT namespace_parent REFERENCES namespace (id) ON DELETE RESTRICT,
    name          text COLLATE "C" NOT NULL,
    -- All levels, outermost first, name last.
    parts         text[] COLLATE "C" NOT NULL,
    -- JSON: a map of strings.
    properties    text NOT NULL,
    created_at_ms bigint NOT NULL,
    -- Not over parts: 64 levels of 1,024 bytes do not fit into a key of a B-tree.
    CONSTRAINT namespace_name UNIQUE NULLS NOT DISTINCT (warehouse_id, parent_id, name)
);

-- A hash has no limit of length.
CREATE INDEX namespace_parts ON namespace USING hash (parts);

-- For the check of namespace_parent when a namespace is dropped.
CREATE INDEX namespace_children ON namespace (parent_id);
