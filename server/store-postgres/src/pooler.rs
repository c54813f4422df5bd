//! Poolers between us and the database, found out by trying: in transaction mode they pass sessions from client to client.

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection, Row};

use crate::error::{OpenError, database, unreachable};

/// How often both connections are asked. Others may be quicker once, but not each time.
const ROUNDS: usize = 4;

const DUPLICATE_STATEMENT: &str = "42P05";
const UNKNOWN_STATEMENT: &str = "26000";

/// Refuses a pooler that passes sessions on and does not tell the prepared statements of its clients apart: it would run
/// another statement than the one that was meant.
///
/// The driver numbers its statements, so that two connections use the same names for different ones.
pub(crate) async fn check_statements(options: &PgConnectOptions) -> Result<(), OpenError> {
    let mut pair = [connect(options).await?, connect(options).await?];
    for round in 0..ROUNDS {
        for (who, conn) in pair.iter_mut().enumerate() {
            let meant = i32::try_from(10 * round + who).expect("few rounds");
            let told = sqlx::query_scalar::<_, i32>(AssertSqlSafe(format!("SELECT {meant}"))).fetch_one(conn).await;
            match told {
                Ok(told) if meant == told => {}
                Ok(_) => return Err(OpenError::StatementsMixed),
                Err(error) if is_mixed(&error) => return Err(OpenError::StatementsMixed),
                Err(error) => return Err(unreachable(error)),
            }
        }
    }
    close(pair).await
}

/// Is a session passed from connection to connection? Then nothing that belongs to a session may be relied on.
pub(crate) async fn shares_sessions(options: &PgConnectOptions) -> Result<bool, OpenError> {
    let mut pair = [connect(options).await?, connect(options).await?];
    let first = backends(&mut pair).await.map_err(unreachable)?;
    let mut shares = first[0] == first[1];
    for _ in 1..ROUNDS {
        shares |= backends(&mut pair).await.map_err(unreachable)? != first;
    }
    close(pair).await?;
    Ok(shares)
}

/// The backends that answer to either connection.
async fn backends(pair: &mut [PgConnection; 2]) -> Result<[i32; 2], sqlx::Error> {
    let mut backends = [0; 2];
    for (backend, conn) in backends.iter_mut().zip(pair) {
        *backend = sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(conn).await?.try_get(0)?;
    }
    Ok(backends)
}

fn is_mixed(error: &sqlx::Error) -> bool {
    database(error).is_some_and(|answer| [DUPLICATE_STATEMENT, UNKNOWN_STATEMENT].contains(&answer.code()))
}

pub(crate) async fn connect(options: &PgConnectOptions) -> Result<PgConnection, OpenError> {
    PgConnection::connect_with(options).await.map_err(unreachable)
}

async fn close(pair: [PgConnection; 2]) -> Result<(), OpenError> {
    for conn in pair {
        conn.close().await.map_err(unreachable)?;
    }
    Ok(())
}
