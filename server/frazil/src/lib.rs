//! The HTTP face of the catalog.
