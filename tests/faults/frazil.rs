//! A server as a process of its own, which a test can end in any way and start again on the same data.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::catalog::Catalog;
use crate::child::{Held, free_port};
use crate::database::Database;
use crate::wait::{until, until_blocking};

/// What one server may take of address space, in KiB: many times what it needs, and no more than the machine bears.
const ADDRESS_SPACE_KIB: u32 = 6 << 20;

/// The server that the tests start: the one that FAULTS_BINARY names, else the one of the same build.
pub fn binary() -> PathBuf {
    let built = option_env!("CARGO_BIN_EXE_frazil-failpoints").map(Into::into);
    let named = std::env::var_os("FAULTS_BINARY").map(PathBuf::from);
    named.or(built).or_else(beside_us).expect("FAULTS_BINARY must name a server, or the feature `failpoints` be on")
}

/// The library does not know what only its tests are told: the server of this build lies beside the test's folder.
fn beside_us() -> Option<PathBuf> {
    let us = std::env::current_exe().ok()?;
    let built = us.parent()?.parent()?.join("frazil-failpoints");
    (cfg!(feature = "failpoints") && built.exists()).then_some(built)
}

/// How a server is to be started.
#[derive(Debug, Clone, Default)]
pub struct Launch {
    /// `None` is the embedded database in the data folder.
    pub database_url: Option<String>,
    pub settings: Vec<(String, String)>,
    pub environment: Vec<(String, String)>,
}

impl Launch {
    pub fn on(database_url: &str) -> Self {
        Self { database_url: Some(database_url.to_owned()), ..Self::default() }
    }

    pub fn set(mut self, key: &str, value: impl ToString) -> Self {
        self.settings.push((key.to_owned(), value.to_string()));
        self
    }

    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Arms points in the server, as `metadata-written=kill@2`.
    pub fn failing_at(self, points: &str) -> Self {
        self.env("FRAZIL_FAILPOINTS", points)
    }
}

/// A server that runs, or ran.
#[derive(Debug)]
pub struct Frazil {
    process: Option<Held>,
    port: u16,
    pub data: PathBuf,
    /// The folder is this server's own, or several share it.
    _own: Option<TempDir>,
    _database: Option<Database>,
}

impl Frazil {
    /// With a data folder of its own.
    pub async fn start(launch: &Launch) -> Self {
        let own = tempfile::tempdir().unwrap();
        let mut server = Self::idle(own.path());
        server._own = Some(own);
        server.run(launch).await;
        server
    }

    pub async fn on_sqlite() -> Self {
        Self::start(&Launch::default()).await
    }

    /// On a new database of the server that the environment names.
    pub async fn on_postgres(launch: Launch) -> Self {
        let database = Database::create().await;
        let launch = Launch { database_url: Some(database.url()), ..launch };
        let mut server = Self::start(&launch).await;
        server._database = Some(database);
        server
    }

    /// Over a data folder that others may use too; not started yet.
    pub fn idle(data: &Path) -> Self {
        Self { process: None, port: free_port(), data: data.to_owned(), _own: None, _database: None }
    }

    /// Starts it, and waits until it is ready. It keeps its address.
    pub async fn run(&mut self, launch: &Launch) {
        self.begin(launch);
        self.wait_until_ready().await;
    }

    /// Starts it and does not wait.
    pub fn begin(&mut self, launch: &Launch) {
        assert!(self.process.is_none(), "it runs already");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {ADDRESS_SPACE_KIB}; exec \"$0\" \"$@\"")]).arg(binary());
        command.args(["serve", "--listen", &self.address(), "--data-dir"]).arg(&self.data);
        if let Some(url) = &launch.database_url {
            command.args(["--database-url", url]);
        }
        for (key, value) in &launch.settings {
            command.args(["--set", &format!("{key}={value}")]);
        }
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("FRAZIL_")) {
            command.env_remove(name);
        }
        command.envs(launch.environment.iter().map(|(name, value)| (name, value)));
        self.process = Some(Held::start(command, "KILL", &self.log_file(), None));
    }

    /// Starts it where it must be refused; what it said.
    pub fn refused(launch: &Launch) -> String {
        let own = tempfile::tempdir().unwrap();
        let mut server = Self::idle(own.path());
        server.begin(launch);
        let status = server.wait_for_end();
        assert_eq!(status, 1, "{}", server.log());
        server.log()
    }

    /// Waits until one that was begun is ready.
    pub async fn wait_until_ready(&mut self) {
        let catalog = self.catalog();
        until("a server that is ready", async || {
            assert!(!self.has_ended(), "the server did not start: {}", self.log());
            catalog.is_ready().await.then_some(())
        })
        .await;
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn catalog(&self) -> Catalog {
        Catalog::at(&self.address())
    }

    /// SIGKILL: nothing is finished.
    pub fn kill(&mut self) {
        let process = self.process.take().expect("it runs");
        process.signal("KILL");
        process.wait();
    }

    /// SIGTERM, and its end.
    pub fn terminate(&mut self) -> i32 {
        let process = self.process.take().expect("it runs");
        process.signal("TERM");
        process.wait()
    }

    /// Waits for an end that it comes to by itself.
    pub fn wait_for_end(&mut self) -> i32 {
        self.process.take().expect("it runs").wait()
    }

    pub fn has_ended(&mut self) -> bool {
        self.process.as_mut().is_none_or(Held::has_ended)
    }

    pub fn signal(&self, name: &str) {
        self.process.as_ref().expect("it runs").signal(name);
    }

    /// What it holds of the machine's memory.
    pub fn resident_bytes(&self) -> u64 {
        let pid = self.process.as_ref().expect("it runs").pid;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().unwrap();
        kib << 10
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap_or_default()
    }

    /// Waits until the log has this text more than `before` times.
    pub fn wait_for_log(&self, text: &str, before: usize) {
        until_blocking(text, || self.log().matches(text).count() > before);
    }

    fn log_file(&self) -> PathBuf {
        self.data.join(format!("server-{}.log", self.port))
    }
}
