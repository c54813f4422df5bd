//! The servers that a database's URL names, and which of them is the primary.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection, Error};
use tokio::time::timeout;

/// How long one server may take to say whether it is the primary.
const ASKED_WITHIN: Duration = Duration::from_secs(3);

/// One server, or several of which one takes writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hosts<O = PgConnectOptions> {
    /// In the order in which they are tried.
    all: Vec<O>,
    /// Only a server that takes writes will do: it is looked for, and followed when another one takes over.
    wants_primary: bool,
}

impl Hosts<String> {
    /// Takes `postgres://user@a:5432,b:5432/database?target_session_attrs=read-write` apart into the URLs of its servers.
    fn split(url: &str) -> Result<Self, Error> {
        let Some((scheme, rest)) = url.split_once("://") else {
            return Ok(Self { all: vec![url.to_owned()], wants_primary: false });
        };
        let (authority, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (user, hosts) = authority.rsplit_once('@').map_or((None, authority), |(user, hosts)| (Some(user), hosts));
        let (path, query) = tail.split_once('?').unwrap_or((tail, ""));
        let (attributes, query): (Vec<_>, Vec<_>) =
            query.split('&').partition(|pair| pair.split('=').next() == Some(SESSION_ATTRIBUTES));
        let is_told = attributes.into_iter().map(asks_for_primary).collect::<Result<Vec<_>, _>>()?.contains(&true);
        let user = user.map(|user| format!("{user}@")).unwrap_or_default();
        let query = query.join("&");
        let query = if query.is_empty() { query } else { format!("?{query}") };
        let all: Vec<_> = hosts.split(',').map(|host| format!("{scheme}://{user}{host}{path}{query}")).collect();
        Ok(Self { wants_primary: is_told || all.len() > 1, all })
    }
}

/// As libpq names it.
const SESSION_ATTRIBUTES: &str = "target_session_attrs";

/// Whether the parameter wants a server that takes writes. One that wants any other is refused.
fn asks_for_primary(parameter: &str) -> Result<bool, Error> {
    match parameter.split_once('=').map_or("", |(_, value)| value) {
        "read-write" | "primary" => Ok(true),
        "any" => Ok(false),
        other => Err(Error::Configuration(
            format!("{SESSION_ATTRIBUTES} is '{other}': the catalog writes, so say read-write or leave it out").into(),
        )),
    }
}

impl Hosts {
    pub fn parse(url: &str) -> Result<Self, Error> {
        let Hosts { all, wants_primary } = Hosts::split(url)?;
        let all = all.iter().map(|url| url.parse()).collect::<Result<_, _>>()?;
        Ok(Self { all, wants_primary })
    }

    /// With something more in the options of each server.
    pub fn each(self, with: impl Fn(PgConnectOptions) -> PgConnectOptions) -> Self {
        Self { all: self.all.into_iter().map(with).collect(), ..self }
    }

    pub fn wants_primary(&self) -> bool {
        self.wants_primary
    }

    /// The first server that takes writes, or the only one that there is.
    pub async fn find(&self) -> Result<PgConnectOptions, Error> {
        if let ([only], false) = (self.all.as_slice(), self.wants_primary) {
            return Ok(only.clone());
        }
        let mut refusals = Vec::with_capacity(self.all.len());
        for options in &self.all {
            match timeout(ASKED_WITHIN, connect(options)).await {
                Ok(Ok(conn)) => {
                    drop(conn);
                    return Ok(options.clone());
                }
                Ok(Err(error)) => refusals.push(format!("{}: {error}", name(options))),
                Err(_) => refusals.push(format!("{}: no answer within {} s", name(options), ASKED_WITHIN.as_secs())),
            }
        }
        Err(Error::Configuration(format!("no server takes writes ({})", refusals.join("; ")).into()))
    }
}

async fn connect(options: &PgConnectOptions) -> Result<PgConnection, Error> {
    let mut conn = PgConnection::connect_with(options).await?;
    refuse_read_only(&mut conn).await?;
    Ok(conn)
}

/// Refuses a server that recovers, as a standby does, or whose sessions only read.
pub(crate) async fn refuse_read_only(conn: &mut PgConnection) -> Result<(), Error> {
    // Not one of the catalog's statements: it asks for the server and not for what is in it.
    let takes_writes = "SELECT NOT pg_is_in_recovery() AND current_setting('transaction_read_only') = 'off'";
    match sqlx::query_scalar::<_, bool>(takes_writes).persistent(false).fetch_one(conn).await? {
        true => Ok(()),
        false => Err(Error::Configuration("the server takes no writes: it is a standby, or read-only".into())),
    }
}

/// A server as a log names it.
pub(crate) fn name(options: &PgConnectOptions) -> String {
    match options.get_socket() {
        Some(socket) => socket.display().to_string(),
        None => format!("{}:{}", options.get_host(), options.get_port()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_several_servers_is_one_url_for_each() {
        let split =
            Hosts::split("postgres://me:p%40ss@a:5433,b/frazil?sslmode=require&target_session_attrs=read-write");
        let all = vec![
            "postgres://me:p%40ss@a:5433/frazil?sslmode=require".to_owned(),
            "postgres://me:p%40ss@b/frazil?sslmode=require".to_owned(),
        ];
        assert_eq!(split.unwrap(), Hosts { all, wants_primary: true });
        let hosts = Hosts::parse("postgres://me@[::1]:5433,b:5434/frazil").unwrap();
        assert_eq!(hosts.all.iter().map(name).collect::<Vec<_>>(), ["[::1]:5433", "b:5434"]);
    }

    #[test]
    fn only_several_servers_or_the_word_of_the_url_want_a_primary() {
        for (url, wants) in [
            ("postgres://me@a/frazil", false),
            ("postgres://a", false),
            ("postgres:///frazil?host=/run/postgresql", false),
            ("postgres://a/frazil?target_session_attrs=any", false),
            ("postgres://a/frazil?target_session_attrs=primary", true),
            ("postgres://a,b/frazil", true),
            ("postgres://a,b/frazil?target_session_attrs=any", true),
        ] {
            assert_eq!(Hosts::split(url).unwrap().wants_primary, wants, "{url}");
        }
        let same = "postgres://me@a:1/frazil?sslmode=disable";
        assert_eq!(Hosts::split(same).unwrap().all, [same]);
    }

    #[test]
    fn a_server_that_must_not_take_writes_is_refused() {
        for attribute in ["standby", "prefer-standby", "read-only", ""] {
            let refused = Hosts::split(&format!("postgres://a/frazil?target_session_attrs={attribute}")).unwrap_err();
            assert!(refused.to_string().contains("read-write"), "{refused}");
        }
    }
}
