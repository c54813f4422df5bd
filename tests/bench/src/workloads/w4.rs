//! W4.

use crate::bench::Bench;
use crate::report::Result;

pub async fn run(_bench: &Bench) -> Result<()> {
    Err("W4".into())
}
