//! Logging in, in the words of OAuth 2.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::auth::own::Issued;

/// The type of every token that is given here, and of those that are taken back for a new one.
pub const ACCESS_TOKEN_TYPE: &str = "urn:ietf:params:oauth:token-type:access_token";

/// The fields of a form; id and secret may come by HTTP Basic instead.
#[derive(ToSchema)]
pub struct TokenRequest {
    /// `client_credentials` to log in, `urn:ietf:params:oauth:grant-type:token-exchange` for a new token in place of one.
    pub grant_type: String,
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// Of an exchange: the token that is replaced.
    pub subject_token: Option<String>,
    /// Of an exchange: `urn:ietf:params:oauth:token-type:access_token`.
    pub subject_token_type: Option<String>,
    /// Not looked at: a token is good for whatever its principal may do.
    pub scope: Option<String>,
}

#[derive(Serialize, ToSchema)]
pub struct TokenResponse {
    access_token: String,
    #[schema(value_type = String, example = "bearer")]
    token_type: &'static str,
    /// In seconds.
    expires_in: i64,
    #[schema(value_type = String)]
    issued_token_type: &'static str,
}

impl From<Issued> for TokenResponse {
    fn from(issued: Issued) -> Self {
        Self {
            access_token: issued.token.reveal().to_owned(),
            token_type: "bearer",
            expires_in: issued.expires_in_secs,
            issued_token_type: ACCESS_TOKEN_TYPE,
        }
    }
}

/// Why no token is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct OAuthError {
    #[schema(value_type = String, example = "invalid_client")]
    pub error: &'static str,
    pub error_description: String,
}

impl OAuthError {
    pub fn invalid_request(description: impl Into<String>) -> Self {
        Self { error: "invalid_request", error_description: description.into() }
    }

    pub fn invalid_client() -> Self {
        let description = "the client id and its secret are of nobody who may log in here";
        Self { error: "invalid_client", error_description: description.to_owned() }
    }

    pub fn unsupported_grant_type() -> Self {
        let description = "grant_type must be client_credentials or urn:ietf:params:oauth:grant-type:token-exchange";
        Self { error: "unsupported_grant_type", error_description: description.to_owned() }
    }
}

impl IntoResponse for OAuthError {
    fn into_response(self) -> Response {
        tracing::info!(error = self.error, "nobody logged in: {}", self.error_description);
        if self.error != "invalid_client" {
            return (StatusCode::BAD_REQUEST, Json(self)).into_response();
        }
        let challenge = [(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"frazil\""))];
        (StatusCode::UNAUTHORIZED, challenge, Json(self)).into_response()
    }
}
