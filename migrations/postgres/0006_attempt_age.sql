-- Attempts are forgotten when they are old, so that their table does not grow with every commit for ever.

CREATE INDEX attempt_age ON attempt (at_ms);
