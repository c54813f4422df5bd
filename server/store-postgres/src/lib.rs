//! The catalog's state kept in postgres.
