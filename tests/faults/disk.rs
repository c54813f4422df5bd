//! A disk that is full or cannot flush, for the files of one process and for nothing else.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::child::ordinary_user;
use crate::frazil::Launch;

/// How the disk fails.
#[derive(Debug, Clone, Copy)]
pub enum Trouble {
    /// No room for the files of an embedded database.
    Full,
    /// No room for tables and indexes of PostgreSQL.
    FullTables,
    /// No room for the write-ahead log of PostgreSQL.
    FullLog,
    /// No room for the files of the warehouse.
    FullWarehouse,
    /// Nothing can be flushed.
    Flush,
    /// The write-ahead log cannot be flushed: what a COMMIT waits for.
    FlushLog,
}

impl Trouble {
    fn file(self) -> &'static str {
        match self {
            Trouble::Full => "full",
            Trouble::FullTables => "full-tables",
            Trouble::FullLog => "full-log",
            Trouble::FullWarehouse => "full-warehouse",
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
        // A database that is another user's looks here too.
        if let Some((uid, gid)) = ordinary_user() {
            std::os::unix::fs::chown(disk.home.path(), Some(uid), Some(gid)).unwrap();
        }
        disk
    }

    /// A server of this launch uses the disk.
    pub fn under(&self, launch: Launch) -> Launch {
        self.environment().into_iter().fold(launch, |launch, (name, value)| launch.env(name, value))
    }

    /// What a process must find in its environment to use the disk.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let (library, home) = (self.library().display().to_string(), self.home.path().display().to_string());
        vec![("LD_PRELOAD", library), ("FAULTS_DISK", home)]
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
