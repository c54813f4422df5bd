//! The whole path of a swap whose answer is lost: a proxy cuts the connection, and the swapper finds out what is true.

use std::io;
use std::sync::{Arc, Mutex};

use catalog::commits::swap::{Swapper, Written};
use catalog::context::{Principal, RequestContext};
use catalog::error::{Error, Kind};
use catalog::testing::TestClock;
use sqlx::postgres::PgSslMode;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

use super::*;

/// What is lost, once, of the next message that contains these bytes, together with its connection.
#[derive(Clone, Copy)]
enum Loss {
    Statement(&'static [u8]),
    Answer(&'static [u8]),
}

/// Stands between a client and the database.
struct Proxy {
    port: u16,
    next: Arc<Mutex<Option<Loss>>>,
}

impl Proxy {
    async fn before(host: String, port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let proxy = Self { port: listener.local_addr()?.port(), next: Arc::default() };
        let next = proxy.next.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (host, next) = (host.clone(), next.clone());
                tokio::spawn(async move {
                    let server = TcpStream::connect((host, port)).await?;
                    carry(client, server, &next).await
                });
            }
        });
        Ok(proxy)
    }

    fn lose(&self, loss: Loss) {
        *self.next.lock().unwrap() = Some(loss);
    }

    fn has_lost(&self) -> bool {
        self.next.lock().unwrap().is_none()
    }
}

/// Forwards both ways until one side ends, or something is to be lost: then both connections are closed.
async fn carry(mut client: TcpStream, mut server: TcpStream, next: &Mutex<Option<Loss>>) -> io::Result<()> {
    let (mut asked, mut answered) = ([0; 16 * 1024], [0; 16 * 1024]);
    let mut answer_is_lost = false;
    loop {
        tokio::select! {
            asked_bytes = client.read(&mut asked) => {
                let message = &asked[..asked_bytes?];
                match due(next, message) {
                    Some(Loss::Statement(_)) => return Ok(()),
                    Some(Loss::Answer(_)) => answer_is_lost = true,
                    None if message.is_empty() => return Ok(()),
                    None => {}
                }
                server.write_all(message).await?;
            }
            answered_bytes = server.read(&mut answered) => {
                let answer = &answered[..answered_bytes?];
                // The database sends what it has to say when it is ready for the next message: after the commit.
                if answer.is_empty() || answer_is_lost {
                    return Ok(());
                }
                client.write_all(answer).await?;
            }
        }
    }
}

fn due(next: &Mutex<Option<Loss>>, message: &[u8]) -> Option<Loss> {
    next.lock().unwrap().take_if(|loss| {
        let (Loss::Statement(wanted) | Loss::Answer(wanted)) = loss;
        message.windows(wanted.len()).any(|part| part == *wanted)
    })
}

/// What the swapper says of a move of `t` that meets the loss, and the table's version afterwards.
///
/// The move goes from `before` to `location`: where they are the same it is one statement, else a transaction of several.
async fn swapped(pool: PgPool, (before, location): (&str, &str), loss: Loss) -> (Result<SwapOutcome, Error>, i64) {
    let direct = PostgresStore::over(pool.clone());
    let world = World::new(&direct).await.unwrap();
    world.must(create_at("t", "file:///w/t").unwrap()).await.unwrap();
    let options = (*pool.connect_options()).clone();
    let proxy = Proxy::before(options.get_host().to_owned(), options.get_port()).await.unwrap();
    let options = options.host("127.0.0.1").port(proxy.port).ssl_mode(PgSslMode::Disable);
    let one = PgPoolOptions::new().max_connections(1).test_before_acquire(false);
    let swapper = Swapper::new(Arc::new(PostgresStore::over(one.connect_with(options).await.unwrap())));
    let ctx = RequestContext {
        principal: Principal::Anonymous,
        request_id: "1".into(),
        deadline: Instant::now() + Duration::from_secs(60),
        clock: Arc::new(TestClock::at(AT_MS)),
        idempotency: None,
    };
    // The connection prepares its statements with the first, so that the second needs no other message.
    let first = swapper.swap(&ctx, &step_to(&world, before).await, Written::default()).await;
    assert_eq!(first.unwrap(), SwapOutcome::Applied);
    let swap = step_to(&world, location).await;
    proxy.lose(loss);
    let second = swapper.swap(&ctx, &swap, Written::default()).await;
    assert!(proxy.has_lost());
    (second, world.pointer("t").await.unwrap().version)
}

/// In the message that runs a prepared statement, and with it its transaction: Execute, of nine bytes and no name.
const EXECUTE: &[u8] = b"E\0\0\0\x09\0";
/// With the byte that ends the text, for BEGIN asks for READ COMMITTED.
const COMMIT: &[u8] = b"COMMIT\0";

const IN_ONE_STATEMENT: (&str, &str) = ("file:///w/t", "file:///w/t");
const IN_A_TRANSACTION: (&str, &str) = ("file:///w/t1", "file:///w/t2");

fn assert_applied((swapped, version): (Result<SwapOutcome, Error>, i64)) {
    assert_eq!(swapped.unwrap(), SwapOutcome::Applied);
    assert_eq!(version, 3);
}

fn assert_nothing_changed((swapped, version): (Result<SwapOutcome, Error>, i64)) {
    assert_eq!(swapped.unwrap_err().kind(), Kind::Unavailable);
    assert_eq!(version, 2);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_statement_whose_answer_is_lost_is_applied(pool: PgPool) {
    assert_applied(swapped(pool, IN_ONE_STATEMENT, Loss::Answer(EXECUTE)).await);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_commit_whose_answer_is_lost_is_applied(pool: PgPool) {
    assert_applied(swapped(pool, IN_A_TRANSACTION, Loss::Answer(COMMIT)).await);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_statement_that_is_lost_changes_nothing(pool: PgPool) {
    assert_nothing_changed(swapped(pool, IN_ONE_STATEMENT, Loss::Statement(EXECUTE)).await);
}

#[sqlx::test(migrator = "crate::MIGRATOR")]
async fn a_commit_that_is_lost_changes_nothing(pool: PgPool) {
    assert_nothing_changed(swapped(pool, IN_A_TRANSACTION, Loss::Statement(COMMIT)).await);
}
