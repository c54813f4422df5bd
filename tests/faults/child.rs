//! Processes of a test: each ends with the test, however that ends.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// Starts the command beside it, tells its process id, and ends it when nobody holds the other end of fd 0 any more, also
/// where it stands still.
const HOLD: &str = r#"
exec 3<&0
signal=$1; shift
"$@" 3<&- </dev/null >&2 &
held=$!
echo $held
{ read _ <&3; kill -$signal $held; kill -CONT $held; pkill -CONT -P $held; } >/dev/null 2>&1 &
watch=$!
wait $held
status=$?
kill $watch 2>/dev/null
exit $status
"#;

/// A user and a group.
pub type User = (u32, u32);

/// A running process.
#[derive(Debug)]
pub struct Held {
    shell: Child,
    /// The process itself; `shell` waits for it.
    pub pid: u32,
    life: Option<ChildStdin>,
}

impl Held {
    /// `signal` is how it is asked to end when the test forgets it. Its output goes to `log`.
    pub fn start(mut command: Command, signal: &str, log: &Path, user: Option<User>) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", HOLD, "sh", signal]).arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            shell.current_dir(folder);
        }
        if let Some((uid, gid)) = user {
            shell.uid(uid).gid(gid);
        }
        command.stdin(Stdio::null());
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
        let mut shell = shell.spawn().unwrap();
        let mut told = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut told).unwrap();
        let pid = told.trim().parse().unwrap_or_else(|_| panic!("no process id: {told}"));
        Self { life: shell.stdin.take(), shell, pid }
    }

    /// Sends a signal by its name, as in `TERM`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.pid.to_string()]).status();
        assert!(sent.unwrap().success(), "signal {name} to {}", self.pid);
    }

    pub fn has_ended(&mut self) -> bool {
        self.shell.try_wait().unwrap().is_some()
    }

    /// Waits for its end; the status, 128 + N for signal N.
    pub fn wait(mut self) -> i32 {
        let mut status = None;
        crate::wait::until_blocking("the end of a process", || {
            status = self.shell.try_wait().unwrap();
            status.is_some()
        });
        status.and_then(|status| status.code()).unwrap_or(-1)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.life.take());
        let _ = self.shell.wait();
    }
}

/// Whom a database runs as where the test is root, which it refuses to be.
pub fn ordinary_user() -> Option<User> {
    let us = Command::new("id").arg("-u").output().unwrap();
    if us.stdout.trim_ascii() != b"0" {
        return None;
    }
    let known = std::fs::read_to_string("/etc/passwd").unwrap();
    let entries: Vec<Vec<&str>> = known.lines().map(|line| line.split(':').collect()).collect();
    let found = ["postgres", "nobody"].iter().find_map(|name| entries.iter().find(|entry| entry[0] == *name));
    let entry = found.expect("root needs a user named postgres or nobody to run a database as");
    Some((entry[2].parse().unwrap(), entry[3].parse().unwrap()))
}

/// A loopback port that nothing listens on at this moment.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
