-- Warehouses and their namespaces: what every other row hangs on.
--
-- Names are compared by their bytes (the default, BINARY), as in the other store.

CREATE TABLE warehouse (
    id            blob PRIMARY KEY NOT NULL,
    name          text NOT NULL UNIQUE,
    root          text NOT NULL,
    -- JSON: further locations, and the storage settings.
    allowed       text NOT NULL,
    storage       text NOT NULL,
    created_at_ms integer NOT NULL
) STRICT;

-- A namespace is found by its levels and listed by its parent. Names never change, so the two always agree.
CREATE TABLE namespace (
    id            blob PRIMARY KEY NOT NULL,
    warehouse_id  blob NOT NULL REFERENCES warehouse (id),
    parent_id     blob REFERENCES namespace (id) ON DELETE RESTRICT,
    name          text NOT NULL,
    -- JSON: all levels, outermost first, name last.
    parts         text NOT NULL,
    -- JSON: a map of strings.
    properties    text NOT NULL,
    created_at_ms integer NOT NULL,
    UNIQUE (warehouse_id, parts)
) STRICT;

CREATE INDEX namespace_children ON namespace (warehouse_id, parent_id, name);

-- For the check of the foreign key when a namespace is dropped.
CREATE INDEX namespace_parent ON namespace (parent_id);
