//! Faults of the PostgreSQL wire: what it carries is taken apart into messages, so that a fault has a place among them.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

use super::{Faults, Gate, Proxy};

/// A fault for the next statement whose text holds these words.
#[derive(Debug, Clone)]
pub struct Fault {
    words: String,
    /// What its transaction must have said before.
    within: String,
    place: Place,
}

/// Where a connection ends, seen from the statement.
#[derive(Debug, Clone)]
pub enum Place {
    /// Nothing of the statement is sent.
    BeforeStatement,
    /// A part of the message that carries it is sent.
    InsideStatement,
    /// It is sent up to the message that lets it run, Sync; nothing of its answer arrives.
    AfterSync,
    /// Its rows arrive, and not that it is done.
    BeforeCommandComplete,
    /// That it is done arrives, and not that the server is ready for the next: only then it is committed.
    BeforeReadyForQuery,
    /// The client's connection ends; the statement is sent once the gate opens.
    Late(Gate),
    /// Nothing ends; the answer arrives once the gate opens.
    HoldAnswer(Gate),
    /// The answer arrives so much later.
    Delay(Duration),
}

impl Fault {
    pub fn at(words: &str, place: Place) -> Self {
        Self { words: words.to_owned(), within: String::new(), place }
    }

    /// At the COMMIT of a transaction with a statement that holds these words.
    pub fn at_commit_of(words: &str, place: Place) -> Self {
        Self { words: "COMMIT".to_owned(), within: words.to_owned(), place }
    }

    fn belongs_to(&self, statement: &str, transaction: &str) -> bool {
        statement.contains(&self.words) && transaction.contains(&self.within)
    }
}

impl Proxy<Fault> {
    /// Before the server at `address`. Connections through it must not ask for TLS.
    pub async fn postgres(address: &str) -> Self {
        Self::serving(address, |client, to, faults| carry(client, to, faults, None)).await
    }

    /// As [`Self::postgres`], with names of prepared statements that no two connections share: before a pooler that does
    /// not keep them apart itself.
    pub async fn postgres_with_names_apart(address: &str) -> Self {
        let connections = AtomicU64::new(0);
        Self::serving(address, move |client, to, faults| {
            let connection = connections.fetch_add(1, Ordering::Relaxed);
            carry(client, to, faults, Some(format!("c{connection}_")))
        })
        .await
    }
}

/// What both directions of a connection know: the fault under way.
type UnderWay = Arc<Mutex<Option<Place>>>;

async fn carry(client: TcpStream, to: String, faults: Faults<Fault>, prefix: Option<String>) -> io::Result<()> {
    let server = TcpStream::connect(to).await?;
    for side in [&client, &server] {
        side.set_nodelay(true)?;
    }
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let under_way = UnderWay::default();
    let (statements, transaction) = (HashMap::new(), String::new());
    let keeps_names = prefix.is_some();
    let asking = Asking { server: to_server, prefix, statements, transaction, faults, under_way: under_way.clone() };
    // Where one direction ends, both connections do.
    let late = tokio::select! {
        late = asking.carry(Messages::of_client(from_client)) => late?,
        answered = answer(Messages::of_server(from_server), to_client, under_way, keeps_names) => return answered,
    };
    if let Some(Late { gate, mut server, rest }) = late {
        gate.pass().await;
        server.write_all(&rest).await?;
        // The server says what it says; nobody listens.
        server.shutdown().await?;
    }
    Ok(())
}

/// What is still to be sent for a client that has gone.
struct Late {
    gate: Gate,
    server: OwnedWriteHalf,
    rest: Vec<u8>,
}

/// The direction from client to server.
struct Asking {
    server: OwnedWriteHalf,
    /// Put before the names of prepared statements.
    prefix: Option<String>,
    /// The texts of the prepared statements, by name.
    statements: HashMap<String, String>,
    /// What was said since the last BEGIN.
    transaction: String,
    faults: Faults<Fault>,
    under_way: UnderWay,
}

impl Asking {
    async fn carry(mut self, mut client: Messages) -> io::Result<Option<Late>> {
        while let Some(message) = client.next().await? {
            if let Some(place) = self.fault_of(&message) {
                match place {
                    Place::BeforeStatement => return Ok(None),
                    Place::InsideStatement => {
                        self.server.write_all(&message.bytes[..message.bytes.len() / 2]).await?;
                        return Ok(None);
                    }
                    Place::Late(gate) => return self.keep(message, client, gate).await.map(Some),
                    place => *self.under_way.lock().unwrap() = Some(place),
                }
            }
            let message = self.prefix.iter().fold(message, |message, prefix| message.with_name_after(prefix));
            self.server.write_all(&message.bytes).await?;
            let runs = matches!(message.kind, b'S' | b'Q');
            if runs && matches!(*self.under_way.lock().unwrap(), Some(Place::AfterSync)) {
                return Ok(None);
            }
        }
        Ok(None)
    }

    /// The messages of a statement up to the one that lets it run.
    async fn keep(self, first: Message, mut client: Messages, gate: Gate) -> io::Result<Late> {
        let mut rest = first.bytes;
        let mut kind = first.kind;
        while !matches!(kind, b'S' | b'Q') {
            let Some(message) = client.next().await? else { break };
            kind = message.kind;
            rest.extend(message.bytes);
        }
        Ok(Late { gate, server: self.server, rest })
    }

    fn fault_of(&mut self, message: &Message) -> Option<Place> {
        let statement = match message.kind {
            b'P' => {
                let mut texts = message.texts();
                let (name, text) = (texts.next()?, texts.next()?);
                self.statements.insert(name, text);
                return None;
            }
            b'B' => self.statements.get(&message.texts().nth(1)?)?.clone(),
            b'Q' => message.texts().next()?,
            _ => return None,
        };
        if statement.starts_with("BEGIN") {
            self.transaction.clear();
        }
        self.transaction.push_str(&statement);
        self.faults.take(|fault| fault.belongs_to(&statement, &self.transaction)).map(|fault| fault.place)
    }
}

/// The direction from server to client. Ends the connection where the fault under way says so.
async fn answer(
    mut server: Messages,
    mut client: OwnedWriteHalf,
    under_way: UnderWay,
    keeps_names: bool,
) -> io::Result<()> {
    while let Some(message) = server.next().await? {
        let place = under_way.lock().unwrap().clone();
        match (place, message.kind) {
            (Some(Place::BeforeCommandComplete), b'C') | (Some(Place::BeforeReadyForQuery), b'Z') => return Ok(()),
            (Some(Place::HoldAnswer(gate)), _) => {
                gate.pass().await;
                *under_way.lock().unwrap() = None;
            }
            (Some(Place::Delay(delay)), _) => {
                tokio::time::sleep(delay).await;
                *under_way.lock().unwrap() = None;
            }
            _ => {}
        }
        client.write_all(&message.bytes).await?;
        // A pooler that loses its server loses the prepared statements of its clients: they begin anew.
        if keeps_names && message.kind == b'E' && message.texts().any(|text| text == STATEMENT_MISSING) {
            return Ok(());
        }
    }
    Ok(())
}

/// As the field of an error tells its SQLSTATE.
const STATEMENT_MISSING: &str = "C26000";

/// One message, with its kind; 0 for the first ones of a client, which have none.
struct Message {
    kind: u8,
    bytes: Vec<u8>,
}

impl Message {
    /// The same, with this put before the name of the prepared statement that it speaks of.
    fn with_name_after(self, prefix: &str) -> Self {
        let end_of_text = |from: usize| self.bytes[from..].iter().position(|byte| *byte == 0).map(|end| from + end + 1);
        let at = match (self.kind, self.bytes.get(5)) {
            (b'P', _) => Some(5),
            (b'B', _) => end_of_text(5),
            (b'D' | b'C', Some(b'S')) => Some(6),
            _ => None,
        };
        let Some(at) = at.filter(|at| self.bytes.get(*at).is_some_and(|first| *first != 0)) else { return self };
        let mut bytes = [&self.bytes[..at], prefix.as_bytes(), &self.bytes[at..]].concat();
        let length = bytes.len() as u32 - 1;
        bytes[1..5].copy_from_slice(&length.to_be_bytes());
        Self { bytes, ..self }
    }

    /// The texts that it begins with.
    fn texts(&self) -> impl Iterator<Item = String> + '_ {
        let payload = self.bytes.get(5..).unwrap_or_default();
        payload.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned())
    }
}

/// What one side says, message by message.
struct Messages {
    from: OwnedReadHalf,
    read: Vec<u8>,
    begins_without_kind: bool,
}

impl Messages {
    fn of_client(from: OwnedReadHalf) -> Self {
        Self { from, read: Vec::new(), begins_without_kind: true }
    }

    fn of_server(from: OwnedReadHalf) -> Self {
        Self { from, read: Vec::new(), begins_without_kind: false }
    }

    async fn next(&mut self) -> io::Result<Option<Message>> {
        loop {
            if let Some(message) = self.whole() {
                return Ok(Some(message));
            }
            if self.from.read_buf(&mut self.read).await? == 0 {
                return Ok(None);
            }
        }
    }

    fn whole(&mut self) -> Option<Message> {
        let before_length = usize::from(!self.begins_without_kind);
        let length = self.read.get(before_length..before_length + 4)?;
        let length = before_length + u32::from_be_bytes(length.try_into().ok()?) as usize;
        if self.read.len() < length {
            return None;
        }
        let rest = self.read.split_off(length);
        let bytes = std::mem::replace(&mut self.read, rest);
        let kind = if self.begins_without_kind { 0 } else { bytes[0] };
        self.begins_without_kind = false;
        Some(Message { kind, bytes })
    }
}
