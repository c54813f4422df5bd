//! What a request brings besides its place: who calls and by when, query values, and a body bound to its `Idempotency-Key`.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, MatchedPath, Request};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use bytes::{Bytes, BytesMut};
use catalog::context::{Noted, Principal, RequestContext};
use catalog::error::Error;
use catalog::idempotency::IdempotencyKey;
use futures::FutureExt;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use crate::api::edge::RequestId;
use crate::api::error::{ApiError, Result};
use crate::api::load::Share;
use crate::api::{Api, encoding, json};
use crate::auth;
use crate::config::LimitsConfig;

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// A key is a UUID as text with its hyphens.
const KEY_BYTES: usize = 36;

/// The context of a request that changes nothing.
pub struct Caller(pub RequestContext);

/// Query values, checked.
pub struct Query<T>(pub T);

/// A body, and the context with the key that is bound to it.
pub struct Mutation<B> {
    pub ctx: RequestContext,
    pub body: B,
}

/// How large a body may be; how many bytes that is, is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodySize {
    /// Names and properties.
    Plain,
    /// Schemas, snapshots, or thousands of ids: what can be as large as a table's metadata.
    Metadata,
}

/// A body of an operation.
pub trait RequestBody: Sized {
    const SIZE: BodySize = BodySize::Plain;

    /// Whether the body is read at all; what is passed over may be anything.
    const IS_READ: bool = true;

    /// Reads what is known to be a JSON object, or empty.
    fn read(body: &Bytes) -> catalog::error::Result<Self>;

    /// What to do where something else of the request is at fault: it is refused.
    /// A commit notes it instead, because one that landed before must be told so first.
    fn refuse(&mut self, fault: Error) -> catalog::error::Result<()> {
        Err(fault)
    }
}

/// An operation that takes no body; one that is sent is ignored.
pub struct NoBody;

/// Bodies that are read as JSON, with the size that each may have.
macro_rules! json_bodies {
    ($($body:ty: $size:ident),+ $(,)?) => {$(
        impl $crate::api::request::RequestBody for $body {
            const SIZE: $crate::api::request::BodySize = $crate::api::request::BodySize::$size;

            fn read(body: &bytes::Bytes) -> catalog::error::Result<Self> {
                $crate::api::json::parse(body)
            }
        }
    )+};
}
pub(crate) use json_bodies;

impl RequestBody for NoBody {
    const IS_READ: bool = false;

    fn read(_body: &Bytes) -> catalog::error::Result<Self> {
        Ok(Self)
    }
}

/// The context of the request, without a key.
pub fn context(parts: &Parts, api: &Api) -> RequestContext {
    RequestContext {
        principal: parts
            .extensions
            .get::<auth::Caller>()
            .map_or(Principal::Anonymous, |caller| caller.principal.clone()),
        request_id: parts.extensions.get::<RequestId>().map_or_else(String::new, |id| id.0.to_string()),
        deadline: Instant::now() + Duration::from_millis(api.commit_deadline_ms()),
        clock: api.clock(),
        idempotency: None,
        noted: parts.extensions.get::<Noted>().cloned().unwrap_or_default(),
    }
}

impl FromRequestParts<Api> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self> {
        Ok(Self(context(parts, api)))
    }
}

impl<T: DeserializeOwned> FromRequestParts<Api> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _api: &Api) -> Result<Self> {
        let query = axum::extract::Query::try_from_uri(&parts.uri);
        query.map(|query| Self(query.0)).map_err(|rejection| Error::invalid(rejection.body_text()).into())
    }
}

impl<B: RequestBody> FromRequest<Api> for Mutation<B> {
    type Rejection = ApiError;

    async fn from_request(request: Request, api: &Api) -> Result<Self> {
        let (parts, body) = request.into_parts();
        if B::IS_READ {
            encoding::check(&parts.extensions)?;
        }
        let text = read_body(&parts, body, api.limits(), B::SIZE).await?;
        let (mut ctx, mut body) = (context(&parts, api), read_object::<B>(&text)?);
        match key(&parts.headers) {
            Ok(None) => {}
            Ok(Some(key)) => {
                ctx.idempotency = Some(IdempotencyKey { key, binding: binding(&parts, &ctx.principal, &text) })
            }
            Err(fault) => body.refuse(fault)?,
        }
        Ok(Self { ctx, body })
    }
}

/// The body at the door: an object, and not too deep for those who will read it.
fn read_object<B: RequestBody>(text: &Bytes) -> catalog::error::Result<B> {
    if !B::IS_READ {
        return B::read(text);
    }
    json::check_object(text)?;
    let mut body = B::read(text)?;
    if let Err(fault) = json::check_nesting(text) {
        body.refuse(fault)?;
    }
    Ok(body)
}

/// The whole body, within its limit and in time.
pub async fn read_body(parts: &Parts, body: Body, limits: &LimitsConfig, size: BodySize) -> Result<Bytes> {
    let limit_bytes = match size {
        BodySize::Plain => limits.body_bytes,
        BodySize::Metadata => limits.metadata_body_bytes,
    };
    let within = Duration::from_millis(limits.body_timeout_ms);
    let read = timeout(within, collect(body, parts.extensions.get(), limit_bytes)).await;
    read.map_err(|_| ApiError::body_too_slow(limits.body_timeout_ms))?
}

/// Whoever waits for the client's next words does so without a place among those at work.
async fn collect(mut body: Body, share: Option<&Share>, limit_bytes: usize) -> Result<Bytes> {
    let mut text = BytesMut::new();
    loop {
        let next = match body.frame().now_or_never() {
            Some(next) => next,
            None => {
                share.inspect(|share| share.rest());
                body.frame().await
            }
        };
        let Some(frame) = next else { break };
        let frame =
            frame.map_err(|error| Error::invalid("the body could not be read to its end").with_source(error))?;
        let Ok(data) = frame.into_data() else { continue };
        if text.len() + data.len() > limit_bytes {
            return Err(ApiError::body_too_large(limit_bytes));
        }
        share.map_or(Ok(()), |share| share.grow(text.len() + data.len()))?;
        text.extend_from_slice(&data);
    }
    share.map_or(Ok(()), Share::resume)?;
    Ok(text.freeze())
}

/// The client's key: any version of UUID, in any case, once.
fn key(headers: &HeaderMap) -> catalog::error::Result<Option<Uuid>> {
    let mut sent = headers.get_all(IDEMPOTENCY_KEY).iter();
    match (sent.next(), sent.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(Error::invalid("Idempotency-Key was sent more than once")),
        (Some(key), None) => {
            let text = key.to_str().ok().filter(|text| text.len() == KEY_BYTES);
            let uuid = text.and_then(|text| Uuid::try_parse(text).ok());
            uuid.map(Some).ok_or_else(|| Error::invalid("Idempotency-Key must be a UUID of 36 characters"))
        }
    }
}

/// What the key stands for: operation, resource, principal and body. Each part is hashed with its length.
fn binding(parts: &Parts, principal: &Principal, body: &[u8]) -> [u8; 32] {
    let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let resource = parts.uri.path_and_query().map_or("", |resource| resource.as_str());
    let bound = [parts.method.as_str(), route, resource, principal.name()].map(str::as_bytes);
    let mut hash = Sha256::new();
    for part in bound.into_iter().chain([body]) {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(keys: &[&str]) -> HeaderMap {
        keys.iter().map(|key| (IDEMPOTENCY_KEY.parse().unwrap(), HeaderValue::from_str(key).unwrap())).collect()
    }

    #[test]
    fn a_key_is_a_uuid_in_any_case_and_version() {
        let text = "0197D5CA-9C2F-4d5e-8f6a-0123456789ab";
        assert_eq!(key(&headers(&[text])).unwrap(), Some(Uuid::try_parse(text).unwrap()));
        assert_eq!(key(&headers(&[])).unwrap(), None);
    }

    #[test]
    fn what_is_no_uuid_or_comes_twice_is_refused() {
        let uuid = "0197d5ca-9c2f-7d5e-8f6a-0123456789ab";
        for keys in [&["not-a-uuid"][..], &[uuid, uuid], &["0197d5ca9c2f7d5e8f6a0123456789ab"], &[""]] {
            assert!(key(&headers(keys)).is_err(), "{keys:?}");
        }
    }

    #[test]
    fn another_operation_body_or_principal_is_another_binding() {
        let parts =
            |method: &str, uri: &str| Request::builder().method(method).uri(uri).body(()).unwrap().into_parts().0;
        let anybody = Principal::Anonymous;
        let one = binding(&parts("POST", "/v1/a/namespaces"), &anybody, b"{}");
        assert_eq!(one, binding(&parts("POST", "/v1/a/namespaces"), &anybody, b"{}"));
        let others = [
            binding(&parts("DELETE", "/v1/a/namespaces"), &anybody, b"{}"),
            binding(&parts("POST", "/v1/b/namespaces"), &anybody, b"{}"),
            binding(&parts("POST", "/v1/a/namespaces"), &Principal::Named("x".into()), b"{}"),
            binding(&parts("POST", "/v1/a/namespaces"), &anybody, b"{ }"),
        ];
        assert!(others.iter().all(|other| *other != one));
    }
}
