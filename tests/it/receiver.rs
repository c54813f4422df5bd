//! Something that takes HTTP requests and keeps them, on a thread of its own: whoever sends may block all others.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A request that was taken.
#[derive(Debug, Clone)]
pub struct Taken {
    /// Its first line and its headers, in lower case.
    pub head: Vec<String>,
    pub body: Vec<u8>,
}

impl Taken {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

pub struct Receiver {
    pub url: String,
    taken: Arc<Mutex<Vec<Taken>>>,
}

impl Receiver {
    /// Answers every request with this status and an empty body.
    pub fn answering(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (url, taken) = (format!("http://{}", listener.local_addr().unwrap()), Arc::<Mutex<Vec<Taken>>>::default());
        let keep = taken.clone();
        thread::spawn(move || {
            for connection in listener.incoming().map_while(Result::ok) {
                // Who hangs up without a word has sent nothing.
                if let Some(request) = take(connection, status) {
                    keep.lock().unwrap().push(request);
                }
            }
        });
        Self { url, taken }
    }

    pub fn taken(&self) -> Vec<Taken> {
        self.taken.lock().unwrap().clone()
    }
}

fn take(connection: TcpStream, status: &str) -> Option<Taken> {
    let mut reader = BufReader::new(&connection);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_lowercase()),
        }
    }
    let mut request = Taken { head, body: Vec::new() };
    let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
    request.body.resize(length, 0);
    reader.read_exact(&mut request.body).ok()?;
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    (&connection).write_all(answer.as_bytes()).ok()?;
    Some(request)
}
