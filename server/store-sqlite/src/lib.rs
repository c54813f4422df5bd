//! The catalog's state kept in sqlite.
