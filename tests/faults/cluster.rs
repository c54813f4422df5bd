//! PostgreSQL servers of a test's own: with settings, with a standby, stopped, killed and promoted at will.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::child::{Held, User, free_port, ordinary_user};
use crate::disk::Disk;
use crate::wait::until_blocking;

/// A PostgreSQL server.
#[derive(Debug)]
pub struct Cluster {
    home: TempDir,
    pub port: u16,
    settings: Vec<(String, String)>,
    environment: Vec<(&'static str, String)>,
    process: Option<Held>,
    user: Option<User>,
}

impl Cluster {
    /// A new, empty one. `settings` are those of postgresql.conf.
    ///
    /// It does not flush: processes die here, machines do not.
    pub fn start(settings: &[(&str, &str)]) -> Self {
        Self::start_in(settings, Vec::new())
    }

    /// As [`Self::start`], on a disk that can fail.
    pub fn start_on(disk: &Disk) -> Self {
        Self::start_in(&[], disk.environment())
    }

    fn start_in(settings: &[(&str, &str)], environment: Vec<(&'static str, String)>) -> Self {
        let mut cluster = Self { environment, ..Self::prepare(settings) };
        cluster.tool("initdb", &["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"]);
        cluster.run();
        cluster
    }

    /// A copy that follows this one, named `name` towards it.
    pub fn standby(&self, name: &str) -> Self {
        let mut standby = Self::prepare(&[]);
        standby.settings.clone_from(&self.settings);
        let source = format!("host=127.0.0.1 port={} user=postgres application_name={name}", self.port);
        let slot = ["-R", "-X", "stream", "-c", "fast", "-C", "-S", name];
        standby.tool("pg_basebackup", &[&["-d", &source][..], &slot, &["-D"]].concat());
        standby.run();
        standby
    }

    fn prepare(settings: &[(&str, &str)]) -> Self {
        let (home, user) = (tempfile::tempdir().unwrap(), ordinary_user());
        if let Some((uid, gid)) = user {
            std::os::unix::fs::chown(home.path(), Some(uid), Some(gid)).unwrap();
        }
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { home, port: free_port(), settings, environment: Vec::new(), process: None, user }
    }

    /// Starts it, again where it ran before, and waits until it takes connections.
    pub fn run(&mut self) {
        let data = self.data();
        until_blocking("PostgreSQL", || {
            if self.process.as_mut().is_none_or(Held::has_ended) {
                // The processes of one that was killed may still hold its memory: then this start fails.
                self.process = Some(self.begin(&data));
            }
            self.answers()
        });
    }

    fn begin(&self, data: &Path) -> Held {
        let mut command = Command::new(binaries().join("postgres"));
        command.arg("-D").arg(data).args(["-p", &self.port.to_string(), "-h", "127.0.0.1", "-k", "", "-F", "-N", "60"]);
        command.args(["-c", "shared_buffers=16MB"]);
        for (name, value) in &self.settings {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        command.current_dir(self.home.path());
        command.envs(self.environment.iter().map(|(name, value)| (*name, value)));
        // SIGINT is PostgreSQL's fast shutdown.
        Held::start(command, "INT", &self.home.path().join("log"), self.user)
    }

    /// Ends it in order; sessions are ended, not waited for.
    pub fn stop(&mut self) {
        let process = self.process.take().expect("it runs");
        process.signal("INT");
        process.wait();
    }

    /// Ends it at once, with all its sessions, as a crash does.
    pub fn crash(&mut self) {
        let process = self.process.take().expect("it runs");
        process.signal("QUIT");
        process.wait();
    }

    /// Ends without a word to anybody.
    pub fn kill(&mut self) {
        let process = self.process.take().expect("it runs");
        process.signal("KILL");
        process.wait();
    }

    /// From its next start on it only recovers, as a standby that nobody feeds.
    pub fn demote(&self) {
        let signal = self.data().join("standby.signal");
        std::fs::write(&signal, b"").unwrap();
        if let Some((uid, gid)) = self.user {
            std::os::unix::fs::chown(signal, Some(uid), Some(gid)).unwrap();
        }
    }

    /// Whether it takes connections.
    pub fn answers(&self) -> bool {
        let ask = ["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()];
        Command::new(binaries().join("pg_isready")).args(ask).status().unwrap().success()
    }

    /// Stands still: it takes nothing and answers nothing, but its connections stay open.
    pub fn freeze(&self) {
        self.each("STOP");
    }

    pub fn thaw(&self) {
        self.each("CONT");
    }

    /// To the server and all its sessions.
    fn each(&self, signal: &str) {
        let parent = self.process.as_ref().expect("it runs");
        let children = Command::new("pgrep").args(["-P", &parent.pid.to_string()]).output().unwrap();
        let children = String::from_utf8(children.stdout).unwrap();
        parent.signal(signal);
        for pid in children.split_whitespace() {
            // One that has ended meanwhile needs no signal.
            let _ = Command::new("kill").args([&format!("-{signal}"), pid]).status();
        }
    }

    /// The standby takes over.
    pub fn promote(&self) {
        self.tool("pg_ctl", &["promote", "-w", "-s", "-D"]);
    }

    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@{}/{database}?sslmode=disable", self.address())
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn data(&self) -> PathBuf {
        self.home.path().join("data")
    }

    /// Runs one of PostgreSQL's tools on the data folder.
    fn tool(&self, name: &str, arguments: &[&str]) {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new(binaries().join(name));
        command.args(arguments).arg(self.data()).current_dir(self.home.path());
        if let Some((uid, gid)) = self.user {
            command.uid(uid).gid(gid);
        }
        let done = command.output().unwrap();
        assert!(done.status.success(), "{name}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

/// The folder that holds initdb and postgres, the newest version first.
fn binaries() -> PathBuf {
    let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = installed.map(|version| version.path().join("bin")).filter(|folder| folder.join("initdb").exists());
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let on_path = std::env::split_paths(&on_path).filter(|folder| folder.join("postgres").exists()).collect::<Vec<_>>();
    let version = |folder: &PathBuf| folder.parent().and_then(|home| home.file_name()?.to_str()?.parse::<u32>().ok());
    folders.max_by_key(version).or_else(|| on_path.first().cloned()).expect("PostgreSQL is not installed")
}
