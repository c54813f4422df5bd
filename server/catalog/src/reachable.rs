//! What a dropped table reaches.
