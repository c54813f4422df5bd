//! How a body is packed: with gzip or not at all, whatever the spelling.

use axum::extract::Request;
use axum::http::{Extensions, HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::Response;

use crate::api::error::{ApiError, Result};

/// What can be unpacked, as clients are told.
pub const TAKEN: HeaderValue = HeaderValue::from_static("gzip");

/// The encodings of a body that cannot be unpacked, as the request names them.
#[derive(Clone)]
struct Unknown(String);

/// Puts `Content-Encoding` into the one spelling that the unpacking layer knows. What is not known stays packed, and is
/// refused by [`check`] where somebody wants to read it.
pub async fn settle(mut request: Request, next: Next) -> Response {
    let named = named(request.headers());
    request.headers_mut().remove(header::CONTENT_ENCODING);
    match named.as_slice() {
        [] => {}
        [one] if one == "gzip" || one == "x-gzip" => {
            request.headers_mut().insert(header::CONTENT_ENCODING, TAKEN);
        }
        _ => {
            request.extensions_mut().insert(Unknown(named.join(", ")));
        }
    }
    next.run(request).await
}

/// Refuses a body that nobody here can unpack.
pub fn check(extensions: &Extensions) -> Result<()> {
    match extensions.get::<Unknown>() {
        None => Ok(()),
        Some(Unknown(named)) => Err(ApiError::unknown_encoding(named)),
    }
}

/// The encodings in small letters; `identity` is none.
fn named(headers: &HeaderMap) -> Vec<String> {
    let sent = headers.get_all(header::CONTENT_ENCODING).iter();
    let texts: Vec<_> = sent.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    texts
        .iter()
        .flat_map(|text| text.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !name.is_empty() && name != "identity")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&'static str]) -> Vec<String> {
        let sent = values.iter().map(|value| HeaderValue::from_static(value));
        named(&sent.map(|value| (header::CONTENT_ENCODING, value)).collect())
    }

    #[test]
    fn encodings_are_told_apart_without_their_case() {
        assert_eq!(of(&["GZIP"]), ["gzip"]);
        assert_eq!(of(&["gzip, BR", "x"]), ["gzip", "br", "x"]);
    }

    #[test]
    fn identity_is_no_encoding() {
        assert!(of(&["Identity", "", " , "]).is_empty());
    }
}
