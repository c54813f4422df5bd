-- A copy of another database is not to be served before it has ended: then its row is gone.

CREATE TABLE copy_under_way (
    begun_at_ms bigint NOT NULL
);
