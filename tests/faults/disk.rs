//! A disk that is full or cannot flush, for the database files of one process and for nothing else.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::frazil::Launch;

/// How the disk fails.
#[derive(Debug, Clone, Copy)]
pub enum Trouble {
    Full,
    /// Nothing can be flushed.
    Flush,
    /// The write-ahead log cannot be flushed: what a COMMIT waits for.
    FlushLog,
}

impl Trouble {
    fn file(self) -> &'static str {
        match self {
            Trouble::Full => "full",
            Trouble::Flush => "flush",
            Trouble::FlushLog => "flush-log",
        }
    }
}

/// The library that stands between a process and its disk, and the folder that tells it what to do.
#[derive(Debug)]
pub struct Disk {
    home: TempDir,
}

impl Disk {
    pub fn sound() -> Self {
        let disk = Self { home: tempfile::tempdir().unwrap() };
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/disk/fault.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(disk.library()).args([source, "-ldl"]);
        let done = compiler.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        disk
    }

    /// A server of this launch uses the disk.
    pub fn under(&self, launch: Launch) -> Launch {
        let library = self.library().display().to_string();
        launch.env("LD_PRELOAD", library).env("FAULTS_DISK", self.home.path().display().to_string())
    }

    pub fn fail(&self, trouble: Trouble) {
        std::fs::write(self.home.path().join(trouble.file()), b"").unwrap();
    }

    pub fn mend(&self, trouble: Trouble) {
        std::fs::remove_file(self.home.path().join(trouble.file())).unwrap();
    }

    fn library(&self) -> PathBuf {
        self.home.path().join("fault.so")
    }
}
