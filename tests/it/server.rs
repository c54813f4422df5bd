//! A server on a real socket with a store of its own, and a client that holds every answer against our document.

use std::sync::OnceLock;

use frazil::config::{Config, DatabaseUrl, Hidden};
use frazil::process::Server;
use frazil::telemetry::{self, PrometheusHandle};
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::document;

/// Runs each named test on both stores, as `sqlite::NAME` and `postgres::NAME`; with other settings than the default ones
/// where a function that sets them is named first.
macro_rules! on_both_stores {
    ($($name:ident),+ $(,)?) => {
        $crate::server::on_both_stores! { with |_| {}; $($name),+ }
    };
    (with $set:expr; $($name:ident),+ $(,)?) => {
        mod sqlite {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let server = crate::server::TestServer::with($set).await;
                super::$name(&server).await;
                server.end().await;
            }
        )+}
        mod postgres {$(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let server = crate::server::TestServer::on_postgres_with($set).await;
                super::$name(&server).await;
                server.end().await;
            }
        )+}
    };
}
pub(crate) use on_both_stores;

pub struct TestServer {
    pub base: String,
    /// Of the listener for metrics and health, where there is one.
    pub metrics_base: Option<String>,
    pub data: TempDir,
    client: Client,
    database: Option<Database>,
    end: CancellationToken,
    ended: JoinHandle<()>,
}

/// A database that this test made, and the server that it is on.
pub struct Database {
    admin_url: String,
    name: String,
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub asked: String,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl TestServer {
    pub async fn on_sqlite() -> Self {
        Self::with(|_| {}).await
    }

    /// On SQLite, with other settings than the default ones.
    pub async fn with(set: impl FnOnce(&mut Config)) -> Self {
        let data = tempfile::tempdir().unwrap();
        Self::begin(data, None, set).await
    }

    pub async fn on_postgres() -> Self {
        Self::on_postgres_with(|_| {}).await
    }

    pub async fn on_postgres_with(set: impl FnOnce(&mut Config)) -> Self {
        let database = Database::create().await;
        let url = database.url();
        let data = tempfile::tempdir().unwrap();
        let on_database = |config: &mut Config| {
            config.database.url = Some(DatabaseUrl::from(url));
            set(config);
        };
        Self::begin(data, Some(database), on_database).await
    }

    /// Over what is there already.
    pub async fn begin(data: TempDir, database: Option<Database>, set: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config::default();
        config.server.listen = ([127, 0, 0, 1], 0).into();
        config.storage.data_dir = data.path().to_owned();
        config.secrets.key = Some(Hidden::from("5e".repeat(32)));
        set(&mut config);
        LISTENER.get_or_init(|| tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default()));
        let metrics = METRICS.get_or_init(|| telemetry::install(telemetry::recorder()).unwrap()).clone();
        let (scheme, base_path) = (config.server.scheme(), config.server.base_path().to_owned());
        let server = Server::open(config, metrics).await.unwrap();
        let (base, end) = (format!("{scheme}://{}{base_path}", server.address), CancellationToken::new());
        let metrics_base = server.metrics_address.map(|address| format!("http://{address}"));
        let ended = tokio::spawn(server.run(end.clone()));
        Self { base, metrics_base, data, client: Client::new(), database, end, ended }
    }

    /// Ends the server as a signal would, and removes what it was given.
    pub async fn end(self) {
        let (_data, database) = self.stop().await;
        if let Some(database) = database {
            database.drop().await;
        }
    }

    /// Ends the server and begins another on the same data.
    pub async fn again(self) -> Self {
        self.again_with(|_| {}).await
    }

    pub async fn again_with(self, set: impl FnOnce(&mut Config)) -> Self {
        let (data, database) = self.stop().await;
        let url = database.as_ref().map(|database| DatabaseUrl::from(database.url()));
        let on_database = |config: &mut Config| {
            config.database.url = url;
            set(config);
        };
        Self::begin(data, database, on_database).await
    }

    /// The flags of commands that work on the same state.
    pub fn flags(&self) -> Vec<String> {
        let data_dir = ["--data-dir".to_owned(), self.data.path().display().to_string()];
        let database = self.database.iter().flat_map(|database| ["--database-url".to_owned(), database.url()]);
        data_dir.into_iter().chain(database).collect()
    }

    /// Ends the server and keeps what it was given.
    pub async fn stop(self) -> (TempDir, Option<Database>) {
        let Self { data, client, database, end, ended, .. } = self;
        drop(client);
        end.cancel();
        ended.await.unwrap();
        (data, database)
    }

    /// The host and port of the main listener.
    pub fn address(&self) -> &str {
        let (_, rest) = self.base.split_once("://").unwrap();
        rest.split('/').next().unwrap()
    }

    /// Where its state is.
    pub fn database_url(&self) -> String {
        let embedded = || format!("sqlite:{}", self.data.path().join("frazil.db").display());
        self.database.as_ref().map_or_else(embedded, Database::url)
    }

    /// From now on the server ends; what is under way is finished.
    pub fn begin_to_end(&self) {
        self.end.cancel();
    }

    /// Takes the database away from the running server.
    pub async fn lose_database(&self) {
        self.database.as_ref().unwrap().drop_now().await;
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], None).await
    }

    pub async fn head(&self, path: &str) -> Answer {
        self.send(Method::HEAD, path, &[], None).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, &[], None).await
    }

    pub async fn put(&self, path: &str, body: Value) -> Answer {
        self.send(Method::PUT, path, &[], Some(body.to_string().into())).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.send(Method::POST, path, &[], Some(body.to_string().into())).await
    }

    /// Paths that do not begin with a known root lie below the prefix of the warehouse.
    pub async fn send(&self, method: Method, path: &str, headers: &[(&str, &str)], body: Option<Vec<u8>>) -> Answer {
        let mut request = self.client.request(method.clone(), self.url(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let answer =
            Answer { asked: format!("{method} {path}"), status, headers, text: response.text().await.unwrap() };
        answer.check_shape(&method);
        document::check(&method, &self.url(path)[self.base.len()..], &answer);
        answer
    }

    pub fn url(&self, path: &str) -> String {
        let outside = ["/v1/", "/coordination/", "/management/", "/health/", "/metrics", "/openapi.yaml", "/docs"];
        let root = if outside.iter().any(|root| path.starts_with(root)) { "" } else { "/v1/default" };
        format!("{}{root}{path}", self.base)
    }

    pub async fn create_namespace(&self, levels: &[&str]) {
        self.post("/namespaces", json!({"namespace": levels})).await.expect(200);
    }

    /// Makes a table and returns its load result.
    pub async fn create_table(&self, namespace: &str, name: &str) -> Value {
        let body = json!({"name": name, "schema": schema()});
        self.post(&format!("/namespaces/{namespace}/tables"), body).await.expect(200).json()
    }

    pub async fn metadata(&self, table: &str) -> Value {
        self.get(table).await.expect(200).json()["metadata"].take()
    }

    /// Appends a snapshot to main, as a writer does that has just loaded the table.
    pub async fn append(&self, table: &str, snapshot_id: i64) -> Answer {
        let metadata = self.metadata(table).await;
        self.post(table, append(&metadata, snapshot_id)).await
    }
}

static METRICS: OnceLock<PrometheusHandle> = OnceLock::new();

/// Hears nothing. While a test that listens is the only one who does, the first thread that comes by an event decides for all
/// whether anybody listens to it; with a second listener all of them are asked.
static LISTENER: OnceLock<tracing::Dispatch> = OnceLock::new();

impl Database {
    /// A missing server is a failure: a test that does not run says nothing.
    pub async fn create() -> Self {
        let url = std::env::var("POSTGRES_DATABASE_URL").or_else(|_| std::env::var("DATABASE_URL"));
        let admin_url = url.expect("POSTGRES_DATABASE_URL or DATABASE_URL must name a PostgreSQL server");
        let database = Self { admin_url, name: format!("frazil_it_{}", Uuid::now_v7().simple()) };
        database.ask_server(format!("CREATE DATABASE {}", database.name)).await;
        database
    }

    pub fn url(&self) -> String {
        let (server, parameters) = self.admin_url.split_once('?').unwrap_or((&self.admin_url, ""));
        let (server, _) = server.rsplit_once('/').unwrap();
        format!("{server}/{}?{parameters}", self.name)
    }

    pub async fn drop(self) {
        self.drop_now().await;
    }

    async fn drop_now(&self) {
        self.ask_server(format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name)).await;
    }

    /// Runs SQL in it.
    pub async fn run(&self, sql: &'static str) {
        let mut connection = PgConnection::connect(&self.url()).await.unwrap();
        sqlx::raw_sql(sql).execute(&mut connection).await.unwrap();
    }

    async fn ask_server(&self, statement: String) {
        let mut connection = PgConnection::connect(&self.admin_url).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
    }
}

impl Answer {
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}: {}", self.asked, self.text);
        self
    }

    /// A refusal of this status and type.
    #[track_caller]
    pub fn refused(self, status: u16, exception: &str) -> Self {
        let answer = self.expect(status);
        assert_eq!(answer.json()["error"]["type"], exception, "{}: {}", answer.asked, answer.text);
        answer
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{}: {error}: {}", self.asked, self.text))
    }

    #[track_caller]
    pub fn message(&self) -> String {
        self.json()["error"]["message"].as_str().unwrap().to_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// What holds of every answer: Iceberg's error shape, and no body where there is to be none.
    fn check_shape(&self, method: &Method) {
        let failed = self.status.is_client_error() || self.status.is_server_error();
        if *method == Method::HEAD || self.status == 204 || self.status == 304 {
            assert_eq!(self.text, "", "{}", self.asked);
        } else if failed {
            let error = &self.json()["error"];
            if error.is_string() {
                // As OAuth has it, where one logs in.
                assert!(self.asked.ends_with("/v1/oauth/tokens"), "{}: {}", self.asked, self.text);
                assert!(self.json()["error_description"].is_string(), "{}: {}", self.asked, self.text);
                return self.check_headers();
            }
            assert_eq!(error["code"], self.status.as_u16(), "{}: {}", self.asked, self.text);
            assert!(error["message"].is_string() && error["type"].is_string(), "{}: {}", self.asked, self.text);
            assert_eq!(error["stack"], Value::Null, "{}: {}", self.asked, self.text);
        }
        self.check_headers();
    }

    fn check_headers(&self) {
        let again = matches!(self.status.as_u16(), 429 | 503);
        assert_eq!(self.header("retry-after").is_some(), again, "{} {}", self.asked, self.status);
        assert_eq!(self.header("www-authenticate").is_some(), self.status == 401, "{} {}", self.asked, self.status);
        assert!(self.header("x-request-id").is_some(), "{}", self.asked);
    }
}

pub fn schema() -> Value {
    json!({"type": "struct", "schema-id": 0, "fields": [
        {"id": 1, "name": "id", "required": true, "type": "long"},
        {"id": 2, "name": "data", "required": false, "type": "string"},
    ]})
}

/// The commit of one new snapshot on top of main.
pub fn append(metadata: &Value, snapshot_id: i64) -> Value {
    let parent = metadata["refs"]["main"]["snapshot-id"].as_i64();
    let mut snapshot = json!({
        "snapshot-id": snapshot_id,
        "sequence-number": metadata["last-sequence-number"].as_i64().unwrap() + 1,
        "timestamp-ms": metadata["last-updated-ms"].as_i64().unwrap() + 1,
        "manifest-list": format!("{}/metadata/snap-{snapshot_id}.avro", metadata["location"].as_str().unwrap()),
        "summary": {"operation": "append"},
        "schema-id": 0,
    });
    if let Some(parent) = parent {
        snapshot["parent-snapshot-id"] = parent.into();
    }
    json!({
        "requirements": [
            {"type": "assert-table-uuid", "uuid": metadata["table-uuid"]},
            {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": parent},
        ],
        "updates": [
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": snapshot_id},
        ],
    })
}
