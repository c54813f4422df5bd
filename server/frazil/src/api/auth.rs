//! The layer that asks every request who sends it, before a byte of its body is read.

use std::net::{IpAddr, Ipv4Addr};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Extensions, HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use catalog::context::lapsed;
use metrics::counter;
use tokio::time::Instant;

use crate::api::error::ApiError;
use crate::api::source::Source;
use crate::api::{Api, edge};
use crate::auth::{Authenticator, Caller, Denied};

/// Requests that were not let through, by why.
const REFUSALS: &str = "frazil_auth_refusals_total";

/// Commits. One that landed before is never refused, so that who was known once is let through to be told so.
const COMMITS: [&str; 2] = ["/v1/{prefix}/namespaces/{namespace}/tables/{table}", "/v1/{prefix}/transactions/commit"];

/// Lets through who is known. Where nobody is asked who they are, that is everybody.
pub async fn ask(State(api): State<Api>, request: Request, next: Next) -> Response {
    let Some(auth) = api.auth() else { return next.run(request).await };
    match verify(auth, request.headers()).await {
        Ok(caller) => answer(caller, request, next).await,
        Err(Denied::Lapsed(caller)) if is_commit(&request) => answer(caller, request, next).await,
        Err(denied) => refuse(auth, source(request.extensions()), denied).await,
    }
}

/// With the caller on the request, for the handlers, and on the answer, for the log.
async fn answer(caller: Caller, mut request: Request, next: Next) -> Response {
    edge::tell_principal(caller.principal.name());
    request.extensions_mut().insert(caller.clone());
    let mut response = next.run(request).await;
    response.extensions_mut().insert(caller);
    response
}

async fn verify(auth: &Authenticator, headers: &HeaderMap) -> Result<Caller, Denied> {
    let mut sent = headers.get_all(header::AUTHORIZATION).iter();
    let (value, None) = (sent.next().ok_or(Denied::Missing)?, sent.next()) else {
        return Err(Denied::Wrong("there is more than one Authorization header".into()));
    };
    let (scheme, token) = value.to_str().ok().and_then(|value| value.split_once(' ')).unwrap_or_default();
    match scheme.eq_ignore_ascii_case("bearer") {
        true => auth.verify(token.trim_ascii()).await,
        false => Err(Denied::Wrong("Authorization does not begin with Bearer".into())),
    }
}

fn is_commit(request: &Request) -> bool {
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    *request.method() == Method::POST && COMMITS.contains(&route)
}

/// The address that a request comes from. All that came by no network are one.
pub fn source(extensions: &Extensions) -> IpAddr {
    extensions.get().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |Source(address)| *address)
}

async fn refuse(auth: &Authenticator, source: IpAddr, denied: Denied) -> Response {
    let (reason, error) = match denied {
        Denied::Missing => ("missing", ApiError::no_token()),
        Denied::Wrong(why) => match too_many(auth, source).await {
            None => ("wrong", ApiError::wrong_token(&why)),
            Some(error) => ("limited", error),
        },
        Denied::Lapsed(_) => ("lapsed", lapsed().into()),
        Denied::Unavailable(error) => ("unavailable", error.into()),
    };
    counter!(REFUSALS, "reason" => reason).increment(1);
    error.into_response()
}

/// Counts a wrong token or credential; the refusal where there were too many.
pub async fn too_many(auth: &Authenticator, source: IpAddr) -> Option<ApiError> {
    let wait = auth.refusals.count(source, Instant::now()).await?;
    // A minute at most.
    let secs = u16::try_from(wait.as_secs()).unwrap_or(u16::MAX).saturating_add(1);
    Some(ApiError::too_many_wrong(secs))
}
