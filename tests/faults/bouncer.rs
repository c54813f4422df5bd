//! PgBouncer in transaction mode before a PostgreSQL server.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::child::{Held, free_port, ordinary_user};
use crate::wait::until_blocking;

const USUAL: [(&str, &str); 8] = [
    ("listen_addr", "127.0.0.1"),
    ("unix_socket_dir", ""),
    ("auth_type", "any"),
    ("pool_mode", "transaction"),
    ("default_pool_size", "1"),
    ("query_wait_timeout", "5"),
    ("server_login_retry", "1"),
    ("ignore_startup_parameters", "extra_float_digits,options,search_path"),
];

/// A running bouncer.
#[derive(Debug)]
pub struct Bouncer {
    home: TempDir,
    port: u16,
    process: Option<Held>,
}

impl Bouncer {
    /// Before the server at `address`; a client waits for a connection of it for up to `wait_s`.
    pub fn before(address: &str, wait_s: u32) -> Self {
        Self::with(address, &[("query_wait_timeout", &wait_s.to_string())])
    }

    /// With settings of pgbouncer.ini that replace or join the usual ones.
    pub fn with(address: &str, changed: &[(&str, &str)]) -> Self {
        let home = tempfile::tempdir().unwrap();
        if let Some((uid, gid)) = ordinary_user() {
            std::os::unix::fs::chown(home.path(), Some(uid), Some(gid)).unwrap();
        }
        let mut bouncer = Self { home, port: free_port(), process: None };
        let (host, server_port) = address.split_once(':').unwrap();
        let mut settings = BTreeMap::from(USUAL);
        settings.extend(changed.iter().copied());
        let settings: String = settings.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
        let text = format!(
            "[databases]\n* = host={host} port={server_port} user=postgres\n[pgbouncer]\nlisten_port = {}\n{settings}",
            bouncer.port
        );
        std::fs::write(bouncer.settings_file(), text).unwrap();
        bouncer.run();
        bouncer
    }

    pub fn run(&mut self) {
        let mut command = Command::new(binary());
        command.arg("-q").arg(self.settings_file());
        self.process = Some(Held::start(command, "KILL", &self.home.path().join("log"), ordinary_user()));
        until_blocking("PgBouncer", || TcpStream::connect(self.address()).is_ok());
    }

    pub fn kill(&mut self) {
        let process = self.process.take().expect("it runs");
        process.signal("KILL");
        process.wait();
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn settings_file(&self) -> PathBuf {
        self.home.path().join("pgbouncer.ini")
    }
}

fn binary() -> PathBuf {
    let on_path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&on_path).chain(["/usr/sbin".into()]);
    folders.find(|folder| folder.join("pgbouncer").exists()).expect("PgBouncer is not installed").join("pgbouncer")
}
