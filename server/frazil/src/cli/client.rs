//! Talks to the management API of a running server.

use std::error::Error as StdError;
use std::time::Duration;

use reqwest::{Method, Response, StatusCode};
use serde_json::Value;

use crate::config::SERVER;

/// How long an answer is waited for: longer than a server takes to find out that a store does not answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Why a command did not do what it was told. Each is one line.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("no answer from {server} ({cause}): is the server running? --server or {SERVER} names another one")]
    NoAnswer { server: String, cause: String },
    #[error("{server} answered {status}, and not as a Frazil server does: --server or {SERVER} names another one")]
    Foreign { server: String, status: StatusCode },
    /// In the server's words.
    #[error("{0}")]
    Refused(String),
}

/// A server, by the URL that its clients have.
pub struct Client {
    server: String,
    http: reqwest::Client,
}

impl Client {
    pub fn of(server: &str) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder().timeout(ANSWER_WITHIN).connect_timeout(CONNECT_WITHIN).build()?;
        Ok(Self { server: server.trim_end_matches('/').to_owned(), http })
    }

    /// For a health check: it waits `within` at most, and no proxy stands between it and the server.
    pub fn close_by(server: &str, within: Duration) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder().timeout(within).no_proxy().build()?;
        Ok(Self { server: server.trim_end_matches('/').to_owned(), http })
    }

    /// The answer's JSON; null where it has no body.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ClientError> {
        let mut request = self.http.request(method, format!("{}{path}", self.server));
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = request.send().await.map_err(|error| self.no_answer(error))?;
        self.read(answer).await
    }

    async fn read(&self, answer: Response) -> Result<Value, ClientError> {
        let status = answer.status();
        let text = answer.text().await.map_err(|error| self.no_answer(error))?;
        if status == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        let json: Value = serde_json::from_str(&text).map_err(|_| self.foreign(status))?;
        if status.is_success() {
            return Ok(json);
        }
        let message = json["error"]["message"].as_str().ok_or_else(|| self.foreign(status))?;
        Err(ClientError::Refused(message.to_owned()))
    }

    /// For an answer that no Frazil server gives.
    pub fn foreign(&self, status: StatusCode) -> ClientError {
        ClientError::Foreign { server: self.server.clone(), status }
    }

    /// Tells the innermost cause, which is the one that says something.
    fn no_answer(&self, error: reqwest::Error) -> ClientError {
        let error = error.without_url();
        let causes = std::iter::successors(Some(&error as &dyn StdError), |error| (**error).source());
        let cause = causes.last().map_or_else(String::new, ToString::to_string);
        ClientError::NoAnswer { server: self.server.clone(), cause }
    }
}
