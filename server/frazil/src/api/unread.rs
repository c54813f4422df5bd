//! What a request still sends when it is answered: read to its end, so that the connection can be used again.
//!
//! Many refusals do not wait for the body. If the connection were then closed, a client that sends its next request on it
//! would meet the end of the line instead of an answer, and could not tell what became of that request.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::timeout;

/// How much of a rest is read, in bytes; with more of it to come the connection is closed, and the client told so.
const REST_MAX_BYTES: usize = 1 << 18;

/// How long the rest may take to arrive.
const REST_WITHIN: Duration = Duration::from_secs(2);

/// Reads what the handlers left unread, after them and before the answer goes out.
pub async fn read_to_end(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let lent = Lent(Arc::new(Mutex::new(body)));
    let version = parts.version;
    let mut response = next.run(Request::from_parts(parts, Body::new(lent.clone()))).await;
    // A body that was waited for in vain is not waited for again.
    let late = response.status() == StatusCode::REQUEST_TIMEOUT;
    let read = !late && timeout(REST_WITHIN, lent.read_rest()).await.unwrap_or(false);
    if !read && version < Version::HTTP_2 {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// A body that comes back when its reader is done with it.
#[derive(Clone)]
struct Lent(Arc<Mutex<Body>>);

impl Lent {
    /// Whether the end was reached.
    async fn read_rest(mut self) -> bool {
        let mut left_bytes = REST_MAX_BYTES;
        while let Some(frame) = self.frame().await {
            let Ok(frame) = frame else { return false };
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            match left_bytes.checked_sub(bytes) {
                Some(left) => left_bytes = left,
                None => return false,
            }
        }
        true
    }

    fn with<T>(&self, look: impl FnOnce(&mut Body) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.with(|body| Pin::new(body).poll_frame(cx))
    }

    fn is_end_stream(&self) -> bool {
        self.with(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.with(|body| body.size_hint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lent(chunks: Vec<usize>) -> Lent {
        let chunks = chunks.into_iter().map(|size| Ok::<_, std::io::Error>(Bytes::from(vec![0; size])));
        Lent(Arc::new(Mutex::new(Body::from_stream(futures::stream::iter(chunks)))))
    }

    #[tokio::test]
    async fn the_rest_of_a_body_is_read_up_to_a_bound() {
        assert!(lent(vec![1, 2, REST_MAX_BYTES - 3]).read_rest().await);
        assert!(!lent(vec![REST_MAX_BYTES, 1]).read_rest().await);
    }

    #[tokio::test]
    async fn what_the_handler_has_read_does_not_count() {
        let body = lent(vec![REST_MAX_BYTES, REST_MAX_BYTES]);
        body.clone().frame().await.unwrap().unwrap();
        assert!(body.read_rest().await);
    }
}
