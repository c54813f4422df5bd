//! W8: one replica against all of them, on one table and on many.

use faults::writer::Retry;

use super::w2::within;
use super::{w2, w4};
use crate::bench::Bench;
use crate::counters::{Counters, SWAPS_LOST};
use crate::report::{Result, Row};

pub async fn run(bench: &Bench) -> Result<()> {
    if bench.catalogs.len() < 2 {
        return Err("W8 wants a further replica: name it in `also`".into());
    }
    let numbers = bench.settings.numbers("writers", &[8, 32], &[2, 8, 32, 64])?;
    let lasting = bench.settings.seconds("seconds", 10, 20)?;
    for writers in numbers {
        for replicas in [1, bench.catalogs.len()] {
            for (what, tables) in [("W2", 1), ("W4", writers)] {
                let row =
                    Row::of("writers", writers).with("tables", tables).with("replicas", replicas).with("like", what);
                let point = async {
                    let before = Counters::read(&bench.target).await?;
                    let catalogs = &bench.catalogs[..replicas];
                    let measured = match what {
                        "W2" => {
                            w2::point(bench, ("W8 as W2", Retry::NONE), writers as usize, lasting, catalogs).await?
                        }
                        _ => w4::point(bench, writers as usize, lasting, catalogs).await?,
                    };
                    let after = Counters::read(&bench.target).await?;
                    // A counter that is not there yet has counted nothing.
                    let lost = before.zip(after).map(|(before, after)| after.since(&before, SWAPS_LOST).unwrap_or(0.0));
                    Ok(measured.with("swaps_lost", lost))
                };
                bench.point(row, within(lasting), point).await;
            }
        }
    }
    Ok(())
}
