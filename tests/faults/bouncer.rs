//! PgBouncer in transaction mode before a PostgreSQL server.

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use crate::child::{Held, free_port, ordinary_user};
use crate::wait::until_blocking;

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
        let home = tempfile::tempdir().unwrap();
        if let Some((uid, gid)) = ordinary_user() {
            std::os::unix::fs::chown(home.path(), Some(uid), Some(gid)).unwrap();
        }
        let (host, server_port) = address.split_once(':').unwrap();
        let mut bouncer = Self { home, port: free_port(), process: None };
        let settings = format!(
            "[databases]\n* = host={host} port={server_port} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\ndefault_pool_size = 1\n\
             query_wait_timeout = {wait_s}\nserver_login_retry = 1\n\
             ignore_startup_parameters = extra_float_digits,options,search_path\n",
            bouncer.port
        );
        std::fs::write(bouncer.settings_file(), settings).unwrap();
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
