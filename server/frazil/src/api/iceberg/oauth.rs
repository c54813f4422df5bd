//! The token endpoint: where service principals log in, as every engine's `credential` setting wants it.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use percent_encoding::percent_decode_str;
use url::form_urlencoded;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::auth::{source, too_many};
use crate::api::error::{ApiError, Result};
use crate::api::iceberg::wire::oauth::{ACCESS_TOKEN_TYPE, OAuthError, TokenRequest, TokenResponse};
use crate::api::request::{BodySize, read_body};
use crate::api::{Api, encoding};
use crate::auth::own::{Credential, Issued, LoginRefused, OwnTokens};
use crate::config::Hidden;

/// The path that clients know without being told.
pub const PATH: &str = "/v1/oauth/tokens";

const CLIENT_CREDENTIALS: &str = "client_credentials";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// For those who are not known yet.
pub fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(get_token))
}

/// What somebody wants who is not known yet.
#[derive(Debug)]
enum Wanted {
    LogIn(Credential),
    Renew { token: Hidden, credential: Option<Credential> },
}

/// Get an access token for the id and secret of a service principal, or for a token that is about to expire. Served where
/// `auth.principals` is set.
#[utoipa::path(post, path = "/v1/oauth/tokens", tag = "authentication",
    request_body(content = TokenRequest, content_type = "application/x-www-form-urlencoded"),
    responses((status = 200, description = "An access token", body = TokenResponse),
              (status = 400, description = "The request cannot be, or the token cannot be renewed", body = OAuthError),
              (status = 401, description = "Id and secret are of nobody who may log in here", body = OAuthError)))]
pub async fn get_token(State(api): State<Api>, request: Request) -> Result<Response> {
    let auth = api.auth().and_then(|auth| Some((auth, auth.own()?)));
    let Some((auth, own)) = auth else { return Err(ApiError::no_such_route(PATH)) };
    let (parts, body) = request.into_parts();
    encoding::check(&parts.extensions)?;
    let form = read_body(&parts, body, api.limits(), BodySize::Plain).await?;
    let refused = match wanted(&parts.headers, &form) {
        Ok(wanted) => match fulfil(own, wanted).await {
            Ok(issued) => return Ok(no_store(Json(TokenResponse::from(issued)))),
            Err(LoginRefused::Unavailable(error)) => return Err(error.into()),
            Err(LoginRefused::Credential) => OAuthError::invalid_client(),
            Err(LoginRefused::Token(why)) => OAuthError::invalid_request(format!("subject_token: {why}")),
        },
        Err(refused) => refused,
    };
    match too_many(auth, source(&parts.extensions)).await {
        Some(error) => Err(error),
        None => Ok(no_store(refused)),
    }
}

async fn fulfil(own: &OwnTokens, wanted: Wanted) -> std::result::Result<Issued, LoginRefused> {
    match wanted {
        Wanted::LogIn(credential) => own.log_in(&credential).await,
        Wanted::Renew { token, credential } => own.renew(token.reveal(), credential.as_ref()).await,
    }
}

fn no_store(answer: impl IntoResponse) -> Response {
    ([(header::CACHE_CONTROL, "no-store")], answer).into_response()
}

/// Reads the form. A client that has only a token left of its credential sends that, as Java does while it renews.
fn wanted(headers: &HeaderMap, form: &Bytes) -> std::result::Result<Wanted, OAuthError> {
    let mut fields = fields(form)?;
    let credential = credential(headers, &mut fields)?;
    match fields.remove("grant_type").as_deref() {
        Some(CLIENT_CREDENTIALS) => credential.map(Wanted::LogIn).ok_or_else(OAuthError::invalid_client),
        Some(TOKEN_EXCHANGE) => {
            let missing = || OAuthError::invalid_request("subject_token is missing");
            let token = fields.remove("subject_token").map(Hidden::from).ok_or_else(missing)?;
            match fields.remove("subject_token_type").as_deref() {
                None | Some(ACCESS_TOKEN_TYPE) => Ok(Wanted::Renew { token, credential }),
                Some(_) => Err(OAuthError::invalid_request(format!("subject_token_type must be {ACCESS_TOKEN_TYPE}"))),
            }
        }
        None => Err(OAuthError::invalid_request("grant_type is missing")),
        Some(_) => Err(OAuthError::unsupported_grant_type()),
    }
}

fn fields(form: &Bytes) -> std::result::Result<BTreeMap<String, String>, OAuthError> {
    let mut fields = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(form) {
        if fields.insert(name.clone().into_owned(), value.into_owned()).is_some() {
            return Err(OAuthError::invalid_request(format!("'{}' was sent more than once", name.escape_debug())));
        }
    }
    Ok(fields)
}

/// The client's id and secret, out of the form or by HTTP Basic, and not in two ways.
fn credential(
    headers: &HeaderMap,
    fields: &mut BTreeMap<String, String>,
) -> std::result::Result<Option<Credential>, OAuthError> {
    let sent = match (fields.remove("client_id"), fields.remove("client_secret")) {
        (Some(id), Some(secret)) => Some(Credential { id, secret: secret.into() }),
        (None, Some(_)) => return Err(OAuthError::invalid_request("client_id is missing: a credential is ID:SECRET")),
        (_, None) => None,
    };
    match (basic(headers)?, sent) {
        (Some(_), Some(_)) => Err(OAuthError::invalid_request("the client's secret was sent in two ways: choose one")),
        (basic, sent) => Ok(basic.or(sent)),
    }
}

/// Id and secret are form-encoded before they are put together.
fn basic(headers: &HeaderMap) -> std::result::Result<Option<Credential>, OAuthError> {
    let sent = headers.get(header::AUTHORIZATION).and_then(|sent| sent.to_str().ok()?.split_once(' '));
    let Some((_, encoded)) = sent.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("basic")) else { return Ok(None) };
    let text = BASE64.decode(encoded.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    let (id, secret) = text.as_deref().and_then(|text| text.split_once(':')).ok_or_else(OAuthError::invalid_client)?;
    let plain = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    Ok(Some(Credential { id: plain(id), secret: plain(secret).into() }))
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(authorization: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_str(authorization).unwrap())])
    }

    fn read(headers: &HeaderMap, form: &str) -> std::result::Result<Wanted, OAuthError> {
        wanted(headers, &Bytes::from(form.to_owned()))
    }

    #[test]
    fn a_credential_comes_in_the_form_or_by_basic() {
        let in_form = read(&HeaderMap::new(), "grant_type=client_credentials&client_id=a&client_secret=b%3Ac&scope=x");
        let by_basic = read(&headers("Basic YTpiOmM="), "grant_type=client_credentials");
        for wanted in [in_form, by_basic] {
            let Ok(Wanted::LogIn(credential)) = wanted else { panic!("{wanted:?}") };
            assert_eq!((credential.id.as_str(), credential.secret.reveal()), ("a", "b:c"));
        }
    }

    #[test]
    fn a_token_is_renewed_with_a_credential_or_alone() {
        let form = format!("grant_type={TOKEN_EXCHANGE}&subject_token=t&subject_token_type={ACCESS_TOKEN_TYPE}");
        for (headers, has_credential) in [(headers("Bearer t"), false), (headers("basic YTpi"), true)] {
            let Ok(Wanted::Renew { token, credential }) = read(&headers, &form) else { panic!("not renew") };
            assert_eq!((token.reveal(), credential.is_some()), ("t", has_credential));
        }
    }

    #[test]
    fn what_is_wrong_is_told_in_the_words_of_oauth() {
        let none = HeaderMap::new();
        let (twice, damaged) = (headers("Basic YTpi"), headers("Basic ???"));
        for (headers, form, error) in [
            (&none, "", "invalid_request"),
            (&none, "grant_type=client_credentials", "invalid_client"),
            (&none, "grant_type=client_credentials&client_secret=s", "invalid_request"),
            (&none, "grant_type=client_credentials&grant_type=password", "invalid_request"),
            (&none, "grant_type=password&client_id=a&client_secret=b", "unsupported_grant_type"),
            (&none, "grant_type=urn:ietf:params:oauth:grant-type:token-exchange", "invalid_request"),
            (&twice, "grant_type=client_credentials&client_id=a&client_secret=b", "invalid_request"),
            (&damaged, "grant_type=client_credentials", "invalid_client"),
        ] {
            assert_eq!(read(headers, form).unwrap_err().error, error, "{form}");
        }
    }

    #[test]
    fn what_was_wanted_is_not_printed() {
        let wanted = read(&HeaderMap::new(), "grant_type=client_credentials&client_id=a&client_secret=hush").unwrap();
        assert!(!format!("{wanted:?}").contains("hush"));
    }
}
