-- Background deletion: a row says what is to be deleted, and stays until it is gone.

CREATE TABLE purge (
    id             blob PRIMARY KEY NOT NULL,
    warehouse_id   blob NOT NULL REFERENCES warehouse (id),
    -- JSON.
    target         text NOT NULL,
    not_before_ms  integer NOT NULL,
    -- Until then somebody works on it; a holder that dies loses it then.
    lease_until_ms integer,
    failures       integer NOT NULL DEFAULT 0,
    last_error     text
) STRICT;

CREATE INDEX purge_due ON purge (not_before_ms, id);
