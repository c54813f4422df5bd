//! Black-box tests of the whole server over HTTP. They are in `main.rs` and its modules; there is nothing to link to.
