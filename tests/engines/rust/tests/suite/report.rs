//! What the client was made to do, as rows of the table in docs/engines/README.md.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex};
use std::time::Instant;
use std::{env, fs};

use serde_json::json;

pub static REPORT: LazyLock<Report> = LazyLock::new(|| Report { began: Instant::now(), calls: Mutex::default() });

/// The calls that came out as they must, by where the files lie.
pub struct Report {
    began: Instant,
    calls: Mutex<BTreeMap<&'static str, u32>>,
}

impl Report {
    /// Counts one more, and writes the file at once: nobody tells a test that it is the last.
    pub fn ran(&self, scheme: &'static str) {
        let mut calls = self.calls.lock().unwrap();
        *calls.entry(scheme).or_default() += 1;
        let Ok(file) = env::var("FRAZIL_REPORT") else { return };
        let rows: Vec<_> = calls.iter().map(|(scheme, calls)| self.row(scheme, *calls)).collect();
        fs::write(file, serde_json::to_vec_pretty(&rows).unwrap()).unwrap();
    }

    fn row(&self, scheme: &str, calls: u32) -> serde_json::Value {
        json!({
            "engine": "iceberg-rust",
            "version": format!("{}, DataFusion {}", version("iceberg"), version("datafusion")),
            "catalog": env::var("FRAZIL_STORE").unwrap_or_default(),
            "files": scheme,
            "statements": calls,
            "seconds": self.began.elapsed().as_secs(),
        })
    }
}

/// The version of a package that Cargo.lock pins.
pub fn version(package: &str) -> &'static str {
    let (_, entry) =
        include_str!("../../Cargo.lock").split_once(&format!("name = \"{package}\"\nversion = \"")).unwrap();
    entry.split_once('"').unwrap().0
}
