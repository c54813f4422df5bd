//! A client of the public REST protocol, with connections that stay open. It keeps no state of tables.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, ETAG, IF_NONE_MATCH, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::report::Result;
use crate::target::{Target, Traits};

/// Longer than the deadline of any server.
const ANSWER_WITHIN: Duration = Duration::from_secs(100);

/// How often the HTTP layer of a stock client sends a request again that was turned away.
const SENT_AGAIN: u32 = 5;

/// One replica of a catalog.
#[derive(Debug, Clone)]
pub struct Catalog {
    http: Client,
    /// The URI with the version and the prefix that the server gave.
    base: String,
    token: Option<String>,
    accept_encoding: Option<String>,
    turned_away: Arc<AtomicU64>,
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub etag: Option<String>,
    /// As it came over the wire.
    pub bytes: Vec<u8>,
    pub took: Duration,
    is_gzip: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Loaded {
    pub metadata_location: Option<String>,
    pub metadata: Value,
}

impl Catalog {
    /// Asks the server at `uri` for its configuration, as every client does first.
    pub async fn connect(uri: &str, target: &Target, accept_encoding: Option<&str>) -> Result<Self> {
        let mut catalog = Self {
            http: Client::builder().timeout(ANSWER_WITHIN).pool_max_idle_per_host(256).build()?,
            base: format!("{}/v1", uri.trim_end_matches('/')),
            token: target.token.clone(),
            accept_encoding: accept_encoding.map(str::to_owned),
            turned_away: Arc::default(),
        };
        let warehouse = target.warehouse.as_deref().map(|name| utf8_percent_encode(name, NON_ALPHANUMERIC).to_string());
        let query = warehouse.map_or_else(String::new, |name| format!("?warehouse={name}"));
        let config: Value = catalog.get(&format!("config{query}")).await?.expect(200)?.json()?;
        let prefix = ["overrides", "defaults"].iter().find_map(|part| config[part]["prefix"].as_str());
        if let Some(prefix) = prefix.filter(|prefix| !prefix.is_empty()) {
            catalog.base = format!("{}/{prefix}", catalog.base);
        }
        Ok(catalog)
    }

    /// How often a request was turned away with 429 or 503 and sent again.
    pub fn turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.send(|| self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        let body = serde_json::to_vec(body)?;
        let request = || self.request(Method::POST, path).header("content-type", "application/json").body(body.clone());
        self.send(request).await
    }

    /// Like [`Catalog::get`], but what is read is dropped at once; the status, the number of bytes and the time it took.
    pub async fn drain(&self, path: &str, etag: Option<&str>) -> Result<(u16, u64, Duration)> {
        let start = Instant::now();
        let mut request = self.request(Method::GET, path);
        if let Some(etag) = etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        let mut response = request.send().await?;
        let mut bytes = 0;
        while let Some(chunk) = response.chunk().await? {
            bytes += chunk.len() as u64;
        }
        Ok((response.status().as_u16(), bytes, start.elapsed()))
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut request = self.http.request(method, format!("{}/{path}", self.base));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(encoding) = &self.accept_encoding {
            request = request.header(ACCEPT_ENCODING, encoding);
        }
        request
    }

    /// Has the patience of a stock client with 429 and 503.
    async fn send(&self, request: impl Fn() -> RequestBuilder) -> Result<Answer> {
        let start = Instant::now();
        for again in 0..SENT_AGAIN {
            let response = request().send().await?;
            if !matches!(response.status().as_u16(), 429 | 503) {
                return answer(response, start).await;
            }
            self.turned_away.fetch_add(1, Ordering::Relaxed);
            let told = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
            sleep(Duration::from_secs(told.unwrap_or(1 << again).min(64))).await;
        }
        answer(request().send().await?, start).await
    }

    /// It may be there already.
    pub async fn create_namespace(&self, name: &str) -> Result<()> {
        let answer = self.post("namespaces", &json!({"namespace": [name], "properties": {}})).await?;
        if answer.status == 409 { Ok(()) } else { answer.expect(200).map(drop) }
    }

    pub async fn create_table(&self, table: &Name, traits: &Traits, root: &str) -> Result<Loaded> {
        let mut body = json!({
            "name": table.name,
            "schema": schema(),
            "partition-spec": {"spec-id": 0, "fields": []},
            "write-order": {"order-id": 0, "fields": []},
            "properties": traits.create_properties,
        });
        if traits.always_stage_create {
            body["stage-create"] = false.into();
        }
        if !traits.chooses_location {
            body["location"] = format!("{root}/{}/{}", table.namespace, table.name).into();
        }
        self.post(&format!("namespaces/{}/tables", table.namespace), &body).await?.expect(200)?.loaded()
    }

    pub async fn load(&self, table: &Name) -> Result<Loaded> {
        self.get(&table.path()).await?.expect(200)?.loaded()
    }
}

/// The schema of all tables here.
pub fn schema() -> Value {
    json!({"type": "struct", "schema-id": 0, "fields": [
        {"id": 1, "name": "id", "required": true, "type": "long"},
        {"id": 2, "name": "data", "required": false, "type": "string"},
    ]})
}

/// A table's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub namespace: String,
    pub name: String,
}

impl Name {
    pub fn path(&self) -> String {
        format!("namespaces/{}/tables/{}", self.namespace, self.name)
    }
}

async fn answer(response: Response, start: Instant) -> Result<Answer> {
    let status = response.status().as_u16();
    let etag = response.headers().get(ETAG).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let is_gzip = response.headers().get(CONTENT_ENCODING).is_some_and(|value| value == "gzip");
    let bytes = response.bytes().await?.into();
    Ok(Answer { status, etag, bytes, took: start.elapsed(), is_gzip })
}

impl Answer {
    pub fn expect(self, status: u16) -> Result<Self> {
        if self.status == status { Ok(self) } else { Err(format!("{}: {}", self.status, self.text()).into()) }
    }

    /// The beginning of it, for a message.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.bytes.len().min(300)]).into_owned()
    }

    pub fn json<T: for<'a> Deserialize<'a>>(&self) -> Result<T> {
        if !self.is_gzip {
            return Ok(serde_json::from_slice(&self.bytes)?);
        }
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(self.bytes.as_slice()).read_to_end(&mut plain)?;
        Ok(serde_json::from_slice(&plain)?)
    }

    pub fn loaded(&self) -> Result<Loaded> {
        self.json()
    }
}
