//! Talks to the management API of a running server.

use std::error::Error as StdError;
use std::time::Duration;

use clap::Args;
use reqwest::{ClientBuilder, Method, Response, StatusCode};
use serde_json::Value;

use crate::api::iceberg::oauth;
use crate::config::{CREDENTIAL, Hidden, SERVER, TOKEN};

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

/// How a command shows who it is, to a server that asks.
#[derive(Debug, Default, Args)]
pub struct Access {
    /// The access token to show.
    #[arg(long, global = true, value_name = "TOKEN", env = TOKEN, hide_env_values = true, value_parser = Hidden::parse)]
    token: Option<Hidden>,
    /// The id and secret of a service principal to log in with.
    #[arg(long, global = true, value_name = "ID:SECRET", env = CREDENTIAL, hide_env_values = true,
        value_parser = Hidden::parse)]
    credential: Option<Hidden>,
}

/// A server, by the URL that its clients have.
pub struct Client {
    server: String,
    http: reqwest::Client,
    token: Option<Hidden>,
}

impl Client {
    pub fn of(server: &str) -> Result<Self, reqwest::Error> {
        Self::with(server, reqwest::Client::builder().timeout(ANSWER_WITHIN))
    }

    pub fn with(server: &str, http: ClientBuilder) -> Result<Self, reqwest::Error> {
        let http = http.connect_timeout(CONNECT_WITHIN).build()?;
        Ok(Self { server: server.trim_end_matches('/').to_owned(), http, token: None })
    }

    /// From now on every request brings a token: the one that is given, or one that is got for a credential.
    pub async fn logged_in(mut self, access: &Access) -> Result<Self, ClientError> {
        self.token = match (&access.token, &access.credential) {
            (Some(token), _) => Some(token.clone()),
            (None, Some(credential)) => Some(self.log_in(credential).await?),
            (None, None) => None,
        };
        Ok(self)
    }

    async fn log_in(&self, credential: &Hidden) -> Result<Hidden, ClientError> {
        let (id, secret) = credential.reveal().split_once(':').ok_or_else(|| {
            ClientError::Refused(format!("--credential or {CREDENTIAL} is not written like ID:SECRET"))
        })?;
        let request = self.http.post(format!("{}{}", self.server, oauth::PATH)).basic_auth(id, Some(secret));
        let form = request.header("content-type", "application/x-www-form-urlencoded");
        let answer = form.body("grant_type=client_credentials").send().await.map_err(|error| self.no_answer(error))?;
        let status = answer.status();
        let answer = self.read(answer).await?;
        let token = answer["access_token"].as_str().ok_or_else(|| self.foreign(status))?;
        Ok(token.to_owned().into())
    }

    /// The answer's JSON; null where it has no body.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ClientError> {
        let mut request = self.http.request(method, format!("{}{path}", self.server));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token.reveal());
        }
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
        // The token endpoint speaks as OAuth has it.
        let message = json["error"]["message"].as_str().or_else(|| json["error_description"].as_str());
        let message = message.ok_or_else(|| self.foreign(status))?;
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
