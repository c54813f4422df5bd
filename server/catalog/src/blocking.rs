//! Work that keeps a processor busy, kept off the threads that serve connections.

use crate::error::{Error, Kind, Result};

/// Runs `work` where it holds nobody up. It must have no effect: whoever waits for it may go away.
pub(crate) async fn run<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|panic| {
        Err(Error::new(Kind::Internal, "a piece of work ended without a result").with_source(panic))
    })
}
