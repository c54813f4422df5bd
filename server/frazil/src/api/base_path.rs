//! The base path: what lies below it is served as if it lay at the root.

use axum::Router;
use axum::extract::Request;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Uri, header};
use axum::response::Response;
use tower::{Service, service_fn};

/// Serves `inside` below the base path, and `outside` everywhere else.
pub fn below(base_path: &str, inside: Router, outside: Router) -> Router {
    let base_path: std::sync::Arc<str> = base_path.into();
    Router::new().fallback_service(service_fn(move |mut request: Request| {
        let (base_path, mut inside, mut outside) = (base_path.clone(), inside.clone(), outside.clone());
        async move {
            match within(&base_path, request.uri()) {
                Some(uri) => {
                    *request.uri_mut() = uri;
                    inside.call(request).await.map(|response| put_back(&base_path, response))
                }
                None => outside.call(request).await,
            }
        }
    }))
}

/// The URI without the base path; `None` where it lies elsewhere.
fn within(base_path: &str, uri: &Uri) -> Option<Uri> {
    let rest = uri.path_and_query()?.as_str().strip_prefix(base_path)?;
    let rest = match rest.chars().next() {
        Some('/') => rest.to_owned(),
        None | Some('?') => format!("/{rest}"),
        Some(_) => return None,
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(rest).ok()?);
    Uri::from_parts(parts).ok()
}

/// A redirection within the server leads below the base path again.
fn put_back(base_path: &str, mut response: Response) -> Response {
    let location = response.headers().get(header::LOCATION).and_then(|location| location.to_str().ok());
    let moved = location.filter(|location| location.starts_with('/')).map(|location| format!("{base_path}{location}"));
    if let Some(moved) = moved.and_then(|moved| HeaderValue::try_from(moved).ok()) {
        response.headers_mut().insert(header::LOCATION, moved);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_loses_the_base_path_and_nothing_else() {
        for (uri, rest) in [
            ("/a/b/v1/config?warehouse=x", Some("/v1/config?warehouse=x")),
            ("/a/b/v1/%2Fx/y", Some("/v1/%2Fx/y")),
            ("/a/b", Some("/")),
            ("/a/b?x", Some("/?x")),
            ("/a/bc", None),
            ("/v1/config", None),
            ("/A/b/v1", None),
        ] {
            let found = within("/a/b", &uri.parse().unwrap()).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), rest, "{uri}");
        }
        let absolute = within("/a", &"http://h:1/a/x".parse().unwrap()).unwrap();
        assert_eq!(absolute, "http://h:1/x");
    }
}
