//! Requests to object stores go on with the trace of the request that they are made for.

use std::fmt;

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};

/// Gives the headers that name the current trace: none where there is no trace.
pub type TraceHeaders = fn() -> Vec<(&'static str, String)>;

/// Makes clients that name the trace. No store signs these headers.
#[derive(Clone, Copy)]
pub struct Traced(pub TraceHeaders);

struct TracedClient {
    client: HttpClient,
    headers: TraceHeaders,
}

impl HttpConnector for Traced {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = ReqwestConnector::default().connect(options)?;
        Ok(HttpClient::new(TracedClient { client, headers: self.0 }))
    }
}

#[async_trait]
impl HttpService for TracedClient {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        for (name, value) in (self.headers)() {
            // What cannot be sent is left out: a trace is worth no failure.
            if let Ok(value) = value.parse() {
                request.headers_mut().insert(name, value);
            }
        }
        self.client.execute(request).await
    }
}

impl fmt::Debug for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Traced")
    }
}

impl fmt::Debug for TracedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.client.fmt(f)
    }
}
