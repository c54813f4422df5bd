//! Tables and views as they are sent: around the bytes of their metadata, which are never read or written again.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use catalog::commits::Committed;
use catalog::tables::{LoadOutcome, Loaded};
use hyper::body::{Body, Frame, SizeHint};

use crate::api::Api;
use crate::api::error::ApiError;

/// Names the snapshot that has what a commit brought once more.
const DUPLICATE_OF: HeaderName = HeaderName::from_static("x-frazil-duplicate-of");

/// What the client has already, out of `If-None-Match`.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct IfNoneMatch {
    /// Without quotes, and strong and weak alike.
    pub tags: Vec<String>,
    /// `*`: whatever it is.
    any: bool,
}

impl FromRequestParts<Api> for IfNoneMatch {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _api: &Api) -> Result<Self, ApiError> {
        let sent = parts.headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        Ok(sent.fold(Self::default(), Self::and))
    }
}

impl IfNoneMatch {
    fn and(mut self, sent: &str) -> Self {
        for tag in sent.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
            match tag {
                "*" => self.any = true,
                tag => self.tags.push(bare(tag).to_owned()),
            }
        }
        self
    }

    /// The answer to a load.
    pub fn answer(&self, outcome: LoadOutcome) -> Response {
        match outcome {
            LoadOutcome::NotModified { etag } => not_modified(&etag),
            LoadOutcome::Loaded(Loaded { etag: Some(etag), .. }) if self.any => not_modified(&etag),
            LoadOutcome::Loaded(loaded) => document(loaded),
        }
    }
}

/// Some clients send a tag back without its quotes, and proxies make strong ones weak.
fn bare(tag: &str) -> &str {
    let tag = tag.strip_prefix("W/").unwrap_or(tag);
    tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).unwrap_or(tag)
}

fn not_modified(etag: &str) -> Response {
    (StatusCode::NOT_MODIFIED, [(header::ETAG, quoted(etag))]).into_response()
}

/// A table or view with its metadata.
pub fn document(loaded: Loaded) -> Response {
    let etag = loaded.etag.as_deref().map(|etag| (header::ETAG, quoted(etag)));
    let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let mut response = Response::new(axum::body::Body::new(Chunks::around(loaded)));
    response.headers_mut().extend([json].into_iter().chain(etag));
    response
}

/// A table after a commit.
pub fn committed(committed: Committed) -> Response {
    let duplicate_of = committed.duplicate_of.map(|id| (DUPLICATE_OF, HeaderValue::from(id)));
    let mut response = document(committed.table);
    response.headers_mut().extend(duplicate_of);
    response
}

fn quoted(etag: &str) -> HeaderValue {
    HeaderValue::from_str(&format!("\"{etag}\"")).expect("a tag is hexadecimal")
}

/// A body of a few pieces that are not copied into one.
struct Chunks(VecDeque<Bytes>);

impl Chunks {
    fn around(loaded: Loaded) -> Self {
        let Loaded { metadata_location, metadata, config, .. } = loaded;
        let location = metadata_location
            .map_or_else(String::new, |location| format!("\"metadata-location\":{},", json(&location)));
        let (before, after) = (format!("{{{location}\"metadata\":"), format!(",\"config\":{}}}", json(&config)));
        Self([before.into(), metadata, after.into()].into())
    }
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("texts, and maps of texts, are JSON")
}

impl Body for Chunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|chunk| Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.iter().map(|chunk| chunk.len() as u64).sum())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn loaded(metadata_location: Option<&str>) -> Loaded {
        Loaded {
            metadata_location: metadata_location.map(str::to_owned),
            etag: Some("abc".to_owned()),
            metadata: Bytes::from_static(br#"{"format-version":2,  "x":1.0}"#),
            config: BTreeMap::from([("k".to_owned(), "\"v\"".to_owned())]),
        }
    }

    async fn text(response: Response) -> String {
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    }

    #[tokio::test]
    async fn the_metadata_is_sent_as_it_is() {
        let response = document(loaded(Some("file:///a \"b\".json")));
        assert_eq!(response.headers()[header::ETAG], "\"abc\"");
        let exact = response.body().size_hint().exact();
        let text = text(response).await;
        assert_eq!(exact, Some(text.len() as u64));
        let expected = r#"{"metadata-location":"file:///a \"b\".json","metadata":{"format-version":2,  "x":1.0},"config":{"k":"\"v\""}}"#;
        assert_eq!(text, expected);
    }

    #[tokio::test]
    async fn a_staged_table_has_no_metadata_location() {
        assert!(text(document(loaded(None))).await.starts_with(r#"{"metadata":{"#));
    }

    #[test]
    fn tags_are_taken_in_every_spelling() {
        let sent = IfNoneMatch::default().and(r#""a", W/"b" , c,"#).and("\"d\"");
        assert_eq!(sent.tags, ["a", "b", "c", "d"]);
        assert!(!sent.any);
        assert!(IfNoneMatch::default().and("*").any);
    }

    #[test]
    fn a_star_matches_whatever_there_is() {
        let star = IfNoneMatch::default().and("*");
        assert_eq!(star.answer(LoadOutcome::Loaded(loaded(None))).status(), StatusCode::NOT_MODIFIED);
        let other = IfNoneMatch::default().and("\"x\"");
        assert_eq!(other.answer(LoadOutcome::Loaded(loaded(None))).status(), StatusCode::OK);
    }
}
