//! Points in the course of a commit where a test kills, holds or fails the process. Without the feature `failpoints`
//! there are none.

use crate::error::Result;

#[cfg(feature = "failpoints")]
mod armed;

#[cfg(feature = "failpoints")]
pub use armed::VARIABLE;

/// The course of a commit comes by here; what is armed for the point happens.
pub async fn reach(point: &'static str) {
    #[cfg(feature = "failpoints")]
    armed::reach(point).await;
    #[cfg(not(feature = "failpoints"))]
    let _ = point;
}

/// As [`reach`], where what follows may fail: so it does, if the point is armed with `error`.
pub async fn reach_or_fail(point: &'static str) -> Result<()> {
    #[cfg(feature = "failpoints")]
    return armed::reach_or_fail(point).await;
    #[cfg(not(feature = "failpoints"))]
    {
        let _ = point;
        Ok(())
    }
}
