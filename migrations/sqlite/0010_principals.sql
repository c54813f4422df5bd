-- Service principals, for those who have no identity provider: what they log in with, and what their tokens are signed with.

CREATE TABLE service_principal (
    id            blob PRIMARY KEY NOT NULL,
    name          text NOT NULL,
    -- SHA-256 of 256 random bits.
    secret_hash   blob NOT NULL,
    -- How many secrets there were: a token of an earlier one is not renewed.
    generation    integer NOT NULL,
    created_at_ms integer NOT NULL,
    expires_at_ms integer,
    revoked_at_ms integer
) STRICT;

-- A revoked principal stays for the log, and its name is free again.
CREATE UNIQUE INDEX service_principal_name ON service_principal (name) WHERE revoked_at_ms IS NULL;

-- One row, made by whoever needs it first.
CREATE TABLE signing_key (
    the_only      integer PRIMARY KEY NOT NULL CHECK (the_only = 1),
    id            blob NOT NULL,
    -- Sealed with the secrets key, or hexadecimal digits where there is none.
    secret        text NOT NULL,
    created_at_ms integer NOT NULL
) STRICT;
