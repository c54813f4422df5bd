//! A point of the server that holds the commit that comes by, until a test lets it go.

use std::path::PathBuf;

use faults::wait::until;
use tempfile::TempDir;

pub struct Held {
    _home: TempDir,
    file: PathBuf,
    point: String,
    time: String,
}

impl Held {
    /// At a point and one of its times, as `metadata-written@1`.
    pub fn at(point: &str) -> Self {
        let (point, time) = point.split_once('@').unwrap();
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("held");
        Self { _home: home, file, point: point.to_owned(), time: time.to_owned() }
    }

    /// As the server is told.
    pub fn arming(&self) -> String {
        format!("{}=hold:{}@{}", self.point, self.file.display(), self.time)
    }

    /// Until a commit is held.
    pub async fn wait(&self) {
        until("a commit that is held", async || self.file.exists().then_some(())).await;
    }

    pub fn release(&self) {
        std::fs::remove_file(&self.file).unwrap();
    }
}
