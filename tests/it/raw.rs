//! Clients that speak HTTP byte by byte, as no library would.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::server::TestServer;

/// What has not ended by then never will: many times what is to be waited for.
pub const HANGS_AFTER: Duration = Duration::from_secs(30);

const CONTINUE: &str = "HTTP/1.1 100 Continue\r\n\r\n";

pub async fn connection(server: &TestServer) -> TcpStream {
    TcpStream::connect(server.address()).await.unwrap()
}

/// A request whose body is waited for: it has begun, and cannot end before [`other_half`] is sent.
pub async fn begun(server: &TestServer) -> TcpStream {
    begun_with(server, "/v1/default/namespaces", "content-length: 20", b"{\"names").await
}

/// A request whose body is waited for, of which a first part is sent.
pub async fn begun_with(server: &TestServer, path: &str, header: &str, part: &[u8]) -> TcpStream {
    let mut connection = connection(server).await;
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nexpect: 100-continue\r\n{header}\r\n\r\n");
    connection.write_all(head.as_bytes()).await.unwrap();
    let mut told = [0; CONTINUE.len()];
    connection.read_exact(&mut told).await.unwrap();
    assert_eq!(told, CONTINUE.as_bytes());
    connection.write_all(part).await.unwrap();
    connection
}

/// Ends what [`begun`] began, and returns the answer.
pub async fn other_half(mut connection: TcpStream) -> String {
    connection.write_all(b"pace\": [\"n\"]}").await.unwrap();
    rest(&mut connection).await
}

/// All that the server says until it closes, or resets, the connection.
pub async fn rest(connection: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let read = timeout(HANGS_AFTER, connection.read_to_end(&mut answer)).await;
    let _reset = read.expect("the connection is closed");
    String::from_utf8_lossy(&answer).into_owned()
}

/// One answer without a body of its own, and its head as far as it goes.
pub async fn head(connection: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let read = timeout(HANGS_AFTER, connection.read_u8()).await;
        head.push(read.expect("the head comes to its end").unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// Frames of HTTP/2.
pub mod h2 {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::time::timeout;

    use super::HANGS_AFTER;

    pub const HEADERS: u8 = 1;
    pub const RESET: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const GO_AWAY: u8 = 7;

    /// The error code of one who asks too much.
    pub const ENHANCE_YOUR_CALM: u32 = 11;

    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

    /// `GET /health/live`, with what HPACK's static table has: method, scheme, then path and authority as they are.
    const LIVE: &[u8] = b"\x82\x86\x04\x0c/health/live\x41\x01x";

    /// With both the end of the headers and of the stream.
    const WHOLE: u8 = 5;

    pub struct Frame {
        pub kind: u8,
        pub stream: u32,
        pub payload: Vec<u8>,
    }

    pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
        let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        frame
    }

    /// A request of its own stream.
    pub fn live(stream: u32) -> Vec<u8> {
        frame(HEADERS, WHOLE, stream, LIVE)
    }

    pub async fn begin(connection: &mut TcpStream) {
        connection.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await.unwrap();
    }

    /// The next frame of that kind; `None` where the connection ends before.
    pub async fn next(connection: &mut TcpStream, kind: u8) -> Option<Frame> {
        loop {
            let frame = timeout(HANGS_AFTER, read(connection)).await.expect("the server goes on")?;
            if frame.kind == kind {
                return Some(frame);
            }
        }
    }

    async fn read(connection: &mut TcpStream) -> Option<Frame> {
        let mut head = [0; 9];
        connection.read_exact(&mut head).await.ok()?;
        let [a, b, c, kind, _, stream @ ..] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        connection.read_exact(&mut payload).await.ok()?;
        Some(Frame { kind, stream: u32::from_be_bytes(stream), payload })
    }
}
