//! W9.

use crate::bench::Bench;
use crate::report::Result;

pub async fn run(_bench: &Bench) -> Result<()> {
    Err("W9".into())
}
