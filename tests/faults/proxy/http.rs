//! Faults of HTTP: each connection carries one request and its answer.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{Faults, Gate, Proxy};

/// A fault for the next request whose first line and body hold these words.
#[derive(Debug, Clone)]
pub struct Fault {
    words: Vec<String>,
    what: What,
}

/// What becomes of a request.
#[derive(Debug, Clone)]
pub enum What {
    /// It never arrives.
    LoseRequest,
    /// This many bytes of it arrive, then the connection ends.
    CutRequest(usize),
    /// It arrives once the gate opens, whether its client still waits or not.
    Hold(Gate),
    /// It is carried out; the answer never arrives.
    LoseAnswer,
    /// This many bytes of the answer arrive.
    CutAnswer(usize),
    /// The answer arrives once the gate opens.
    HoldAnswer(Gate),
    /// It is sent twice, one after the other; the second answer is given back.
    Repeat,
    /// It takes this much longer.
    Delay(Duration),
    /// It never arrives; this status, and the code of an S3 store, is the answer.
    Refuse(u16, &'static str),
}

impl Fault {
    pub fn of(words: &[&str], what: What) -> Self {
        Self { words: words.iter().map(|word| (*word).to_owned()).collect(), what }
    }

    fn belongs_to(&self, request: &str) -> bool {
        self.words.iter().all(|word| request.contains(word.as_str()))
    }
}

impl Proxy<Fault> {
    /// Before the server at `address`.
    pub async fn http(address: &str) -> Self {
        Self::serving(address, carry).await
    }
}

async fn carry(mut client: TcpStream, to: String, faults: Faults<Fault>) -> io::Result<()> {
    let Some(request) = read_request(&mut client).await? else { return Ok(()) };
    let fault = {
        let text = String::from_utf8_lossy(&request);
        faults.take(|fault| fault.belongs_to(&text)).map(|fault| fault.what)
    };
    match &fault {
        Some(What::LoseRequest) => return Ok(()),
        Some(What::CutRequest(bytes)) => {
            let mut server = TcpStream::connect(&to).await?;
            return server.write_all(&request[..(*bytes).min(request.len())]).await;
        }
        Some(What::Refuse(status, code)) => return client.write_all(refusal(*status, code).as_bytes()).await,
        Some(What::Delay(delay)) => tokio::time::sleep(*delay).await,
        Some(What::Hold(gate)) => gate.pass().await,
        Some(What::Repeat) => drop(ask(&to, &request).await?),
        _ => {}
    }
    let answer = ask(&to, &request).await?;
    match &fault {
        Some(What::LoseAnswer) => return Ok(()),
        Some(What::CutAnswer(bytes)) => return client.write_all(&answer[..(*bytes).min(answer.len())]).await,
        Some(What::HoldAnswer(gate)) => gate.pass().await,
        _ => {}
    }
    client.write_all(&answer).await?;
    client.shutdown().await
}

fn refusal(status: u16, code: &str) -> String {
    let body = format!("<Error><Code>{code}</Code><Message>refused</Message></Error>");
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Refused\r\ncontent-type: application/xml\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// The whole answer to a request that asks to close the connection after it.
async fn ask(to: &str, request: &[u8]) -> io::Result<Vec<u8>> {
    let (mut server, mut answer) = (TcpStream::connect(to).await?, Vec::new());
    server.write_all(request).await?;
    server.read_to_end(&mut answer).await?;
    Ok(answer)
}

const END_OF_HEAD: &[u8] = b"\r\n\r\n";

/// One request, made to close its connection; `None` where the client says nothing more.
async fn read_request(client: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut read = Vec::new();
    let end = loop {
        if let Some(at) = read.windows(END_OF_HEAD.len()).position(|bytes| bytes == END_OF_HEAD) {
            break at + END_OF_HEAD.len();
        }
        if client.read_buf(&mut read).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&read[..end]).into_owned();
    while read.len() < end + length_of_body(&head) {
        if client.read_buf(&mut read).await? == 0 {
            return Ok(None);
        }
    }
    let mut lines: Vec<&str> = head.trim_end().split("\r\n").collect();
    lines.retain(|line| !line.to_ascii_lowercase().starts_with("connection:"));
    lines.push("connection: close");
    Ok(Some([lines.join("\r\n").as_bytes(), END_OF_HEAD, &read[end..]].concat()))
}

fn length_of_body(head: &str) -> usize {
    let length = head.split("\r\n").filter_map(|line| line.split_once(':'));
    let mut length = length.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    length.next().map_or(0, |(_, value)| value.trim().parse().unwrap_or(0))
}
