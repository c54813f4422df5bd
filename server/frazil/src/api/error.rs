//! The one table: what went wrong, to a status and to the exception name that Iceberg's clients look for.

use std::error::Error as StdError;
use std::sync::Arc;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use catalog::error::{Error, Kind};
use serde::Serialize;
use utoipa::ToSchema;

use crate::api::encoding;

/// When a client that was turned away may come back, in seconds.
const RETRY_AFTER_SECS: u16 = 1;

/// A refusal of the catalog, or one that only HTTP knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Problem {
    Catalog(Kind),
    NoSuchRoute,
    MethodNotAllowed,
    BodyTooSlow,
    BodyTooLarge,
    UnknownEncoding,
    NoToken,
    WrongToken,
    TooManyWrong { retry_after_secs: u16 },
}

/// A failed request on its way out. The edge gives it its body, see [`crate::api::edge`].
#[derive(Debug)]
pub struct ApiError {
    problem: Problem,
    error: Error,
}

/// What a handler returns.
pub type Result<T, E = ApiError> = std::result::Result<T, E>;

/// An [`ApiError`] travelling in the extensions of its response.
#[derive(Clone)]
pub struct Failure(pub Arc<ApiError>);

impl ApiError {
    pub fn no_such_route(path: &str) -> Self {
        Self::http(Problem::NoSuchRoute, format!("There is nothing at {path}"))
    }

    pub fn method_not_allowed(method: &str, path: &str) -> Self {
        Self::http(Problem::MethodNotAllowed, format!("{path} does not answer {method}"))
    }

    pub fn body_too_slow(limit_ms: u64) -> Self {
        Self::http(Problem::BodyTooSlow, format!("the body did not arrive within {limit_ms} ms"))
    }

    pub fn body_too_large(limit_bytes: usize) -> Self {
        let message = format!("the body is larger than {limit_bytes} bytes: see the settings under [limits]");
        Self::http(Problem::BodyTooLarge, message)
    }

    pub fn unknown_encoding(named: &str) -> Self {
        let message = format!("Content-Encoding '{named}' is not known here: send the body as gzip, or as it is");
        Self::http(Problem::UnknownEncoding, message)
    }

    pub fn no_token() -> Self {
        Self::http(Problem::NoToken, "this server wants an access token: Authorization: Bearer …".to_owned())
    }

    pub fn wrong_token(why: &str) -> Self {
        Self::http(Problem::WrongToken, format!("the access token was not accepted: {why}"))
    }

    pub fn too_many_wrong(retry_after_secs: u16) -> Self {
        let message =
            "too many wrong tokens or credentials came from this address: come back after Retry-After seconds";
        Self::http(Problem::TooManyWrong { retry_after_secs }, message.to_owned())
    }

    fn http(problem: Problem, message: String) -> Self {
        Self { problem, error: Error::invalid(message) }
    }

    pub fn status(&self) -> StatusCode {
        self.row().0
    }

    /// The body. What a 5xx says about us is the id under which the log has it.
    pub fn body(&self, request_id: &str) -> IcebergErrorResponse {
        let (status, exception) = self.row();
        let message = match (self.problem, status.is_server_error()) {
            (Problem::Catalog(Kind::Internal), _) => format!("internal error, logged as request {request_id}"),
            (_, true) => format!("{} (request {request_id})", self.error.message()),
            (_, false) => self.error.message().to_owned(),
        };
        IcebergErrorResponse { error: ErrorModel { message, r#type: exception, code: status.as_u16() } }
    }

    /// The message with all its causes, for the log.
    pub fn chain(&self) -> String {
        let mut chain = self.error.message().to_owned();
        let mut cause = self.error.source();
        while let Some(error) = cause {
            chain = format!("{chain}: {error}");
            cause = error.source();
        }
        chain
    }

    /// The table. A client deletes its files, retries or keeps everything by these codes, so no row is a matter of taste.
    fn row(&self) -> (StatusCode, &'static str) {
        match self.problem {
            Problem::Catalog(Kind::Invalid) => (StatusCode::BAD_REQUEST, "BadRequestException"),
            Problem::Catalog(Kind::IllegalArgument) => (StatusCode::BAD_REQUEST, "IllegalArgumentException"),
            Problem::Catalog(Kind::Unauthorized) => (StatusCode::UNAUTHORIZED, "NotAuthorizedException"),
            Problem::Catalog(Kind::Forbidden) => (StatusCode::FORBIDDEN, "ForbiddenException"),
            Problem::Catalog(Kind::NoSuchWarehouse) => (StatusCode::NOT_FOUND, "NoSuchWarehouseException"),
            Problem::Catalog(Kind::NoSuchNamespace) => (StatusCode::NOT_FOUND, "NoSuchNamespaceException"),
            Problem::Catalog(Kind::NoSuchTable) => (StatusCode::NOT_FOUND, "NoSuchTableException"),
            Problem::Catalog(Kind::NoSuchView) => (StatusCode::NOT_FOUND, "NoSuchViewException"),
            Problem::Catalog(Kind::NoSuchFunction) => (StatusCode::NOT_FOUND, "NoSuchFunctionException"),
            Problem::Catalog(Kind::NotFound) => (StatusCode::NOT_FOUND, "NotFoundException"),
            Problem::Catalog(Kind::AlreadyExists) => (StatusCode::CONFLICT, "AlreadyExistsException"),
            Problem::Catalog(Kind::NamespaceNotEmpty) => (StatusCode::CONFLICT, "NamespaceNotEmptyException"),
            Problem::Catalog(Kind::WarehouseNotEmpty) => (StatusCode::CONFLICT, "WarehouseNotEmptyException"),
            Problem::Catalog(Kind::CommitFailed) => (StatusCode::CONFLICT, "CommitFailedException"),
            Problem::Catalog(Kind::Unprocessable) => (StatusCode::UNPROCESSABLE_ENTITY, "UnprocessableEntityException"),
            Problem::Catalog(Kind::Overloaded) => (StatusCode::TOO_MANY_REQUESTS, "TooManyRequestsException"),
            Problem::Catalog(Kind::Unavailable) => (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailableException"),
            Problem::Catalog(Kind::StateUnknown) => (StatusCode::INTERNAL_SERVER_ERROR, "CommitStateUnknownException"),
            Problem::Catalog(Kind::Internal) => (StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError"),
            Problem::NoSuchRoute => (StatusCode::NOT_FOUND, "NoSuchEndpointException"),
            Problem::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowedException"),
            Problem::BodyTooSlow => (StatusCode::REQUEST_TIMEOUT, "RequestTimeoutException"),
            Problem::BodyTooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "PayloadTooLargeException"),
            Problem::NoToken | Problem::WrongToken => (StatusCode::UNAUTHORIZED, "NotAuthorizedException"),
            Problem::TooManyWrong { .. } => (StatusCode::TOO_MANY_REQUESTS, "TooManyRequestsException"),
            Problem::UnknownEncoding => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaTypeException"),
        }
    }

    /// Only what is safe to send again says when; without the header Java takes a 503 for an unknown outcome.
    fn retry_after_secs(&self) -> Option<u16> {
        match (self.problem, self.status()) {
            (Problem::TooManyWrong { retry_after_secs }, _) => Some(retry_after_secs),
            (_, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) => Some(RETRY_AFTER_SECS),
            _ => None,
        }
    }

    /// What a client without a token is told as RFC 6750 has it: nothing but that it needs one.
    fn challenge(&self) -> Option<HeaderValue> {
        match (self.problem, self.status()) {
            (Problem::NoToken, _) => Some(HeaderValue::from_static("Bearer")),
            (_, StatusCode::UNAUTHORIZED) => Some(HeaderValue::from_static("Bearer error=\"invalid_token\"")),
            _ => None,
        }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        Self { problem: Problem::Catalog(error.kind()), error }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status().into_response();
        if let Some(secs) = self.retry_after_secs() {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(secs));
        }
        if let Some(challenge) = self.challenge() {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        if self.problem == Problem::UnknownEncoding {
            response.headers_mut().insert(header::ACCEPT_ENCODING, encoding::TAKEN);
        }
        response.extensions_mut().insert(Failure(Arc::new(self)));
        response
    }
}

/// The body of every answer that is not a success.
#[derive(Debug, Serialize, ToSchema)]
pub struct IcebergErrorResponse {
    pub error: ErrorModel,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorModel {
    /// What is wrong and what to do about it.
    pub message: String,
    /// The exception that Iceberg's clients raise.
    #[schema(value_type = String, example = "NoSuchTableException")]
    pub r#type: &'static str,
    /// The status of the answer.
    #[schema(minimum = 400, maximum = 599)]
    pub code: u16,
}

impl IntoResponse for IcebergErrorResponse {
    fn into_response(self) -> Response {
        Json(self).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: Kind) -> ApiError {
        Error::new(kind, "why").into()
    }

    #[test]
    fn only_what_may_be_resent_carries_retry_after() {
        for (kind, resent) in [
            (Kind::Overloaded, true),
            (Kind::Unavailable, true),
            (Kind::StateUnknown, false),
            (Kind::Internal, false),
            (Kind::CommitFailed, false),
        ] {
            let response = of(kind).into_response();
            assert_eq!(response.headers().contains_key(header::RETRY_AFTER), resent, "{kind:?}");
        }
    }

    #[test]
    fn who_is_not_known_is_told_how_to_become_so() {
        let told = |error: ApiError| error.into_response().headers()[header::WWW_AUTHENTICATE].clone();
        assert_eq!(told(ApiError::no_token()), "Bearer");
        for error in [ApiError::wrong_token("why"), of(Kind::Unauthorized)] {
            assert_eq!(told(error), "Bearer error=\"invalid_token\"");
        }
        assert!(!of(Kind::Forbidden).into_response().headers().contains_key(header::WWW_AUTHENTICATE));
    }

    #[test]
    fn an_internal_error_tells_its_id_and_nothing_else() {
        let error = Error::new(Kind::Internal, "disk sda1 is full").with_source("errno 28");
        let body = ApiError::from(error).body("r-1");
        assert_eq!(body.error.message, "internal error, logged as request r-1");
        assert_eq!((body.error.r#type, body.error.code), ("InternalServerError", 500));
    }

    #[test]
    fn the_log_has_the_whole_chain() {
        let error = Error::new(Kind::Unavailable, "no database").with_source("connection refused");
        assert_eq!(ApiError::from(error).chain(), "no database: connection refused");
    }

    #[test]
    fn an_unknown_outcome_is_never_a_refusal() {
        assert_eq!(of(Kind::StateUnknown).status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(of(Kind::StateUnknown).body("r").error.r#type, "CommitStateUnknownException");
    }
}
