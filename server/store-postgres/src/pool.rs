//! Connections to the primary: bounded, given up where no answer comes, and another server's when another one takes over.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream, StreamExt, TryStreamExt};
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions, PgQueryResult, PgRow, PgStatement, PgTypeInfo};
use sqlx::{Connection, Describe, Either, Error, Execute, Executor, PgPool, Postgres, SqlStr};
use tokio::time::{sleep, timeout};

use crate::hosts::{self, Hosts, refuse_read_only};

/// For one statement, or a transaction of several. Nothing of ours takes that long: who waits longer waits for a server
/// that is gone without a word, and its connection would be held for as long as the system believes in it.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(40);

/// How long a connection may take to be ready for the next one.
const RETURN_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the primary is asked whether it still is, where there are others.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// A bounded number of connections; clones share them. As an executor it runs one statement on one of them.
#[derive(Debug, Clone)]
pub(crate) struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Replaced as a whole when another server is the primary: what hangs on the old one holds no place in the new one.
    now: RwLock<PgPool>,
    options: PgPoolOptions,
}

/// A connection that goes back to its pool when it is dropped, unless it does not answer any more.
pub(crate) struct Lent {
    conn: Option<PoolConnection<Postgres>>,
}

impl Pool {
    /// Looks for the primary, connects to it, and follows it where the hosts want that.
    pub async fn open(hosts: Hosts, options: PgPoolOptions) -> Result<Self, Error> {
        let wants_primary = hosts.wants_primary();
        let options = match wants_primary {
            true => options.after_connect(|conn, _| Box::pin(refuse_read_only(conn))),
            false => options,
        };
        let primary = hosts.find().await?;
        let now = options.clone().connect_with(primary).await?;
        let shared = Arc::new(Shared { now: RwLock::new(now), options });
        if wants_primary {
            tokio::spawn(follow(Arc::downgrade(&shared), hosts));
        }
        Ok(Self { shared })
    }

    /// The pool of a server that is never followed.
    pub fn over(pool: PgPool) -> Self {
        let options = pool.options().clone();
        Self { shared: Arc::new(Shared { now: RwLock::new(pool), options }) }
    }

    /// The connections to whatever is the primary now.
    pub fn now(&self) -> PgPool {
        self.shared.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub async fn lend(&self) -> Result<Lent, Error> {
        Ok(Lent { conn: Some(self.now().acquire().await?) })
    }

    /// A connection outside of the pool.
    pub async fn fresh(&self) -> Result<PgConnection, Error> {
        PgConnection::connect_with(&self.now().connect_options()).await
    }
}

/// Asks the primary again and again, and looks for another one when it is gone or takes no writes any more.
async fn follow(shared: Weak<Shared>, hosts: Hosts) {
    let mut watch: Option<PgConnection> = None;
    loop {
        sleep(LOOK_EVERY).await;
        let Some(shared) = shared.upgrade() else { return };
        let options = shared.now.read().unwrap_or_else(PoisonError::into_inner).connect_options();
        match timeout(LOOK_TIMEOUT, look(watch.take(), &options)).await.map_err(|_| no_answer()).flatten() {
            Ok(conn) => watch = Some(conn),
            Err(error) => shared.move_on(&hosts, &options, &error).await,
        }
    }
}

/// The connection, if its server still takes writes.
async fn look(watch: Option<PgConnection>, options: &PgConnectOptions) -> Result<PgConnection, Error> {
    let mut conn = match watch {
        Some(conn) => conn,
        None => PgConnection::connect_with(options).await?,
    };
    refuse_read_only(&mut conn).await?;
    Ok(conn)
}

impl Shared {
    /// Turns to the server that takes writes now. It may be the same one, started anew.
    async fn move_on(&self, hosts: &Hosts, old: &PgConnectOptions, error: &Error) {
        let found = match hosts.find().await {
            Ok(found) => found,
            Err(none) => {
                tracing::warn!(%error, %none, "the database's primary is gone, and no other server takes writes yet");
                return;
            }
        };
        tracing::warn!(%error, from = hosts::name(old), to = hosts::name(&found), "the database has another primary");
        let old = {
            let mut now = self.now.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *now, self.options.clone().connect_lazy_with(found))
        };
        // Who waits for a connection to the old one is told so at once; who has one is not disturbed.
        tokio::spawn(async move { old.close().await });
    }
}

/// The answer of the database, if it comes in time.
pub(crate) async fn in_time<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    in_time_or(std::convert::identity, work).await
}

/// As [`in_time`]; `late` says what it means that no answer came.
pub(crate) async fn in_time_or<T, E>(
    late: impl FnOnce(Error) -> E,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    timeout(ANSWER_TIMEOUT, work).await.unwrap_or_else(|_| Err(late(no_answer())))
}

fn no_answer() -> Error {
    Error::Io(std::io::ErrorKind::TimedOut.into())
}

impl Lent {
    /// Takes it out of the pool for good: nothing more is sent on it.
    pub fn give_up(mut self) {
        drop(self.conn.take().map(PoolConnection::detach));
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(mut conn) = self.conn.take() else { return };
        // The pool itself would wait for ever until the connection is ready, and its place would be lost meanwhile.
        let returned = conn.return_to_pool();
        tokio::spawn(timeout(RETURN_TIMEOUT, returned));
    }
}

impl Deref for Lent {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.conn.as_ref().expect("it is there until it is dropped")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.conn.as_mut().expect("it is there until it is dropped")
    }
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").finish_non_exhaustive()
    }
}

impl<'p> Executor<'p> for &'p Pool {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, Error>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let answered = async move {
            let mut conn = self.lend().await?;
            in_time(conn.fetch_many(query).try_collect::<Vec<_>>()).await
        };
        stream::once(answered).map_ok(|all| stream::iter(all).map(Ok::<_, Error>)).try_flatten().boxed()
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'p: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        Box::pin(async move {
            let mut conn = self.lend().await?;
            in_time(conn.fetch_optional(query)).await
        })
    }

    fn prepare_with<'e>(self, sql: SqlStr, types: &'e [PgTypeInfo]) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'p: 'e,
    {
        Box::pin(async move {
            let mut conn = self.lend().await?;
            in_time(conn.prepare_with(sql, types)).await
        })
    }

    fn describe<'e>(self, sql: SqlStr) -> BoxFuture<'e, Result<Describe<Postgres>, Error>>
    where
        'p: 'e,
    {
        Box::pin(async move {
            let mut conn = self.lend().await?;
            in_time(conn.describe(sql)).await
        })
    }
}
