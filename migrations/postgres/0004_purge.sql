-- Background deletion: a row says what is to be deleted, and stays until it is gone.

CREATE TABLE purge (
    id             uuid PRIMARY KEY,
    warehouse_id   uuid NOT NULL REFERENCES warehouse (id),
    -- JSON.
    target         text NOT NULL,
    not_before_ms  bigint NOT NULL,
    -- Until then somebody works on it; a holder that dies loses it then.
    lease_until_ms bigint,
    failures       bigint NOT NULL DEFAULT 0,
    last_error     text
);

CREATE INDEX purge_due ON purge (not_before_ms, id);
