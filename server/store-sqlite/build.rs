//! `sqlx::migrate!` reads the migrations, so a new one is a reason to build again.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations/sqlite");
}
