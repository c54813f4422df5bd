//! The process itself: its signals and its exit codes.

#![expect(clippy::unwrap_used, reason = "what a test needs and does not get is its failure")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What has not happened by then never will.
const HANGS_AFTER: Duration = Duration::from_secs(60);

const FRAZIL: &str = env!("CARGO_BIN_EXE_frazil");

/// A server on a folder of its own, ended with the test.
struct Frazil {
    child: Child,
    address: String,
    /// Kept open: who has nobody that reads cannot print.
    _printed: BufReader<ChildStdout>,
    _data: tempfile::TempDir,
}

impl Frazil {
    /// Requests under way may take ten minutes once it is told to end.
    fn start() -> Self {
        let data = tempfile::tempdir().unwrap();
        let mut child = Command::new(FRAZIL)
            .args(["serve", "--listen", "127.0.0.1:0", "--set", "server.drain_timeout_ms=600000", "--data-dir"])
            .arg(data.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        printed.read_line(&mut line).unwrap();
        let (_, address) = line.trim().rsplit_once("http://").unwrap();
        Self { child, address: address.to_owned(), _printed: printed, _data: data }
    }

    fn terminate(&self) {
        let told = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(told.success());
    }

    fn wait_until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        let began = Instant::now();
        while !holds(self) {
            assert!(began.elapsed() < HANGS_AFTER, "never: {what}");
            sleep(Duration::from_millis(10));
        }
    }

    fn ended(&mut self) -> ExitStatus {
        self.wait_until("the process ends", |frazil| frazil.child.try_wait().unwrap().is_some());
        self.child.wait().unwrap()
    }

    fn stops_listening(&mut self) {
        self.wait_until("it takes no connection", |frazil| TcpStream::connect(&frazil.address).is_err());
    }

    /// A request that has begun, and ends with the last byte of its body.
    fn half_a_request(&self) -> TcpStream {
        let mut connection = TcpStream::connect(&self.address).unwrap();
        let head =
            "POST /v1/default/namespaces HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 20\r\n\r\n";
        connection.write_all(head.as_bytes()).unwrap();
        let mut told = [0; 25];
        connection.read_exact(&mut told).unwrap();
        assert!(told.starts_with(b"HTTP/1.1 100"));
        connection
    }

    fn health(&self) -> ExitStatus {
        let url = format!("http://{}", self.address);
        Command::new(FRAZIL).args(["health", "--url", &url]).stderr(Stdio::null()).status().unwrap()
    }
}

impl Drop for Frazil {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_signal_ends_the_process_when_all_is_done_that_was_begun() {
    let mut frazil = Frazil::start();
    assert!(frazil.health().success());
    let mut begun = frazil.half_a_request();
    frazil.terminate();
    frazil.stops_listening();
    assert!(!frazil.health().success());
    begun.write_all(b"{\"namespace\": [\"n\"]}").unwrap();
    let mut answer = String::new();
    begun.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(frazil.ended().success());
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut frazil = Frazil::start();
    let _begun = frazil.half_a_request();
    frazil.terminate();
    frazil.stops_listening();
    frazil.terminate();
    assert_eq!(frazil.ended().code(), Some(1));
}
