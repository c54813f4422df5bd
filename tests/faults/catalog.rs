//! A client of the catalog that never tries again by itself and takes no answer for granted.

use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};

/// Longer than any deadline of the server: who waits longer waits for ever.
const ANSWER_WITHIN: Duration = Duration::from_secs(100);

const WAITING_METRIC: &str = "frazil_commit_queue_depth";

/// The warehouse `default` of a server.
#[derive(Debug, Clone)]
pub struct Catalog {
    http: Client,
    address: String,
}

/// An answer, read to its end.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    /// Of a duplicate: what it is a duplicate of.
    pub duplicate_of: Option<i64>,
    pub retry_after: bool,
    pub text: String,
}

/// What came of a request: an answer, or a connection that was lost before it.
pub type Told = Result<Answer, reqwest::Error>;

impl Catalog {
    /// Each request has a connection of its own, so that nothing is sent twice behind our back.
    pub fn at(address: &str) -> Self {
        let http = Client::builder().pool_max_idle_per_host(0).timeout(ANSWER_WITHIN).build().unwrap();
        Self { http, address: address.to_owned() }
    }

    pub async fn is_ready(&self) -> bool {
        let asked = self.http.get(format!("http://{}/health/ready", self.address)).send().await;
        asked.is_ok_and(|answer| answer.status() == 200)
    }

    /// The number of requests that wait in the queues of tables.
    pub async fn waiting(&self) -> Option<f64> {
        let text = self.get("/metrics").await.ok()?.text;
        let line = text.lines().find(|line| line.starts_with(WAITING_METRIC))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    pub async fn get(&self, path: &str) -> Told {
        told(self.request(Method::GET, path)).await
    }

    pub async fn delete(&self, path: &str) -> Told {
        told(self.request(Method::DELETE, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Told {
        told(self.request(Method::POST, path).json(body)).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Told {
        told(self.request(Method::PUT, path).json(body)).await
    }

    pub async fn post_with_key(&self, path: &str, key: &str, body: &Value) -> Told {
        told(self.request(Method::POST, path).header("idempotency-key", key).json(body)).await
    }

    /// Paths lie below the warehouse, but those of other roots.
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let outside = ["/v1/", "/coordination/", "/management/", "/metrics", "/health/"];
        let root = if outside.iter().any(|root| path.starts_with(root)) { "" } else { "/v1/default" };
        self.http.request(method, format!("http://{}{root}{path}", self.address))
    }

    pub async fn create_namespace(&self, name: &str) {
        self.post("/namespaces", &json!({"namespace": [name]})).await.unwrap().expect(200);
    }

    /// A table of two columns; its metadata.
    pub async fn create_table(&self, namespace: &str, name: &str, properties: &Value) -> Value {
        let schema = json!({"type": "struct", "schema-id": 0, "fields": [
            {"id": 1, "name": "id", "required": true, "type": "long"},
            {"id": 2, "name": "data", "required": false, "type": "string"},
        ]});
        let body = json!({"name": name, "schema": schema, "properties": properties});
        let answer = self.post(&format!("/namespaces/{namespace}/tables"), &body).await.unwrap();
        answer.expect(200).json()["metadata"].take()
    }

    /// The table's metadata now.
    pub async fn load(&self, table: &str) -> Value {
        self.get(table).await.unwrap().expect(200).json()["metadata"].take()
    }
}

async fn told(request: RequestBuilder) -> Told {
    let response = request.send().await?;
    let status = response.status().as_u16();
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    let duplicate_of = header("x-frazil-duplicate-of").and_then(|id| id.parse().ok());
    let retry_after = header("retry-after").is_some();
    Ok(Answer { status, duplicate_of, retry_after, text: response.text().await? })
}

impl Answer {
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text);
        self
    }

    /// A refusal of this status and type.
    #[track_caller]
    pub fn refused(self, status: u16, exception: &str) -> Self {
        let answer = self.expect(status);
        assert_eq!(answer.json()["error"]["type"], exception, "{}", answer.text);
        answer
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// Says that the change may have been applied.
    pub fn is_unknown(&self) -> bool {
        self.status == 500 && self.json()["error"]["type"] == "CommitStateUnknownException"
    }
}
