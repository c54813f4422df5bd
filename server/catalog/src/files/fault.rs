//! What a store said when it failed: enough to tell what to mend, and nothing of what was sent to it.
//!
//! Errors of the client quote URLs, which may be signed, and answers, which may repeat a request with its tokens. So only
//! the status, the store's own code and its sentence are kept.

use std::fmt;
use std::io::ErrorKind;

/// How much of a store's own sentence is kept, in characters.
const SENTENCE_CHARS: usize = 300;

/// What is wrong, as far as it can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The store does not take these credentials for anything.
    Credentials,
    /// The store knows who asks and does not allow this.
    NotAllowed,
    NoBucket,
    OtherRegion,
    /// No credentials could be had to begin with: the service that gives them out did not.
    NoCredentials,
    Unreachable,
    /// The store does not know this kind of request.
    Unsupported,
    Other,
}

/// The cause, and a line for the log.
#[derive(Debug)]
pub struct Fault {
    pub cause: Cause,
    said: String,
}

impl Fault {
    pub fn of(error: &object_store::Error) -> Self {
        let text = error.to_string();
        let code = code_of(&text);
        Self { cause: cause_of(&text, code, io_kind(error)), said: without_secrets(&text) }
    }

    /// Of a store that was not even asked.
    pub fn unanswered(said: impl Into<String>) -> Self {
        Self { cause: Cause::Unreachable, said: said.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

impl std::error::Error for Fault {}

/// The kind of the first I/O error among the causes.
pub fn io_kind(error: &object_store::Error) -> Option<ErrorKind> {
    let first: &(dyn std::error::Error + 'static) = error;
    std::iter::successors(Some(first), |error| error.source())
        .find_map(|error| error.downcast_ref::<std::io::Error>())
        .map(std::io::Error::kind)
}

/// By the codes of S3, of Google (which uses the same ones) and of Azure, then by what else the client tells.
fn cause_of(text: &str, code: Option<&str>, io: Option<ErrorKind>) -> Cause {
    if asks_for_credentials(text) {
        return Cause::NoCredentials;
    }
    match code {
        Some(
            "InvalidAccessKeyId"
            | "SignatureDoesNotMatch"
            | "InvalidToken"
            | "ExpiredToken"
            | "InvalidSecurity"
            | "AuthenticationFailed"
            | "InvalidAuthenticationInfo"
            | "AuthenticationRequired"
            | "NoAuthenticationInformation",
        ) => Cause::Credentials,
        Some("NoSuchBucket" | "ContainerNotFound" | "ContainerBeingDeleted" | "FilesystemNotFound") => Cause::NoBucket,
        Some("PermanentRedirect" | "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException") => {
            Cause::OtherRegion
        }
        Some("NotImplemented" | "UnsupportedHeader" | "MethodNotAllowed") => Cause::Unsupported,
        _ if text.contains("redirect without LOCATION") || text.contains("status code: 301") => Cause::OtherRegion,
        _ if text.contains("status code: 501") => Cause::Unsupported,
        _ if text.contains("status code: 401") || text.contains("failed to authenticate") => Cause::Credentials,
        _ if text.contains("status code: 403") || io == Some(ErrorKind::PermissionDenied) => Cause::NotAllowed,
        _ if !text.contains("status code: ") && text.contains("Error performing ") => Cause::Unreachable,
        _ => Cause::Other,
    }
}

/// Whether what failed is a request to a service that gives out credentials: by what the clients call it, by the addresses
/// of such services in a cloud's machine, or as the only request to S3 whose URL the client hides.
fn asks_for_credentials(text: &str) -> bool {
    ["token request", "Error reading federated", "http://169.254.", "S3 error: Error performing POST REDACTED"]
        .iter()
        .any(|sign| text.contains(sign))
}

/// The store's own name of the error.
fn code_of(text: &str) -> Option<&str> {
    between(text, "<Code>", "</Code>").or_else(|| between(text, "(code: ", ")"))
}

/// The text up to the first answer in it, its URLs without queries; then the answer's code and sentence.
fn without_secrets(text: &str) -> String {
    let answer =
        ["non-2xx status code: ", "error response: "].iter().find_map(|mark| Some(text.find(mark)? + mark.len()));
    let head = match answer {
        // The status and its name, as in "403 Forbidden: ".
        Some(at) => &text[..at + text[at..].find(": ").unwrap_or(text[at..].len().min(3))],
        None => text,
    };
    let mut kept = head.split(' ').map(without_query).collect::<Vec<_>>().join(" ");
    for (name, value) in [("code", code_of(text)), ("message", between(text, "<Message>", "</Message>"))] {
        if let Some(value) = value.filter(|_| answer.is_some()) {
            let line: String = value.lines().next().unwrap_or_default().chars().take(SENTENCE_CHARS).collect();
            kept.push_str(&format!(", {name}: {}", without_query(&line)));
        }
    }
    kept
}

fn without_query(word: &str) -> &str {
    word.split_once('?').map_or(word, |(before, _)| before)
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(open)?;
    rest.split_once(close).map(|(inner, _)| inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Fault {
        Fault::of(&object_store::Error::Generic { store: "S3", source: text.into() })
    }

    fn answered(status: &str, body: &str) -> Fault {
        of(&format!(
            "Error performing PUT http://s/b/x?sig=hush in 1ms - Server returned non-2xx status code: {status}: {body}"
        ))
    }

    #[test]
    fn answers_are_told_by_code_and_sentence_and_nothing_else() {
        let body = "<Error><Code>SignatureDoesNotMatch</Code><Message>The signature is wrong.</Message>\
                    <CanonicalRequest>x-amz-security-token:hush</CanonicalRequest></Error>";
        let fault = answered("403 Forbidden", body);
        assert_eq!(fault.cause, Cause::Credentials);
        assert_eq!(
            fault.to_string(),
            "Generic S3 error: Error performing PUT http://s/b/x in 1ms - Server returned non-2xx status code: 403 Forbidden, \
             code: SignatureDoesNotMatch, message: The signature is wrong."
        );
        for body in ["hush", "x-amz-security-token: hush\r\n: hush", "{\"error\":\"hush\"}", ""] {
            assert!(!answered("500 Internal Server Error", body).to_string().contains("hush"), "{body}");
        }
    }

    #[test]
    fn causes_are_told_apart() {
        let coded = |status, code: &str| answered(status, &format!("<Error><Code>{code}</Code></Error>")).cause;
        for (found, cause) in [
            (coded("403 Forbidden", "InvalidAccessKeyId"), Cause::Credentials),
            (coded("403 Forbidden", "AccessDenied"), Cause::NotAllowed),
            (coded("404 Not Found", "NoSuchBucket"), Cause::NoBucket),
            (coded("404 Not Found", "ContainerNotFound"), Cause::NoBucket),
            (coded("400 Bad Request", "AuthorizationHeaderMalformed"), Cause::OtherRegion),
            (coded("501 Not Implemented", "NotImplemented"), Cause::Unsupported),
            (answered("401 Unauthorized", "").cause, Cause::Credentials),
            (answered("403 Forbidden", "").cause, Cause::NotAllowed),
            (answered("503 Slow Down", "").cause, Cause::Other),
            (
                of("Error performing PUT http://s/b/x in 3s - HTTP error: error sending request").cause,
                Cause::Unreachable,
            ),
            (of("Error performing token request: Error performing POST http://m in 3s").cause, Cause::NoCredentials),
            (of("Error performing PUT http://169.254.169.254/latest/api/token in 1s").cause, Cause::NoCredentials),
            (
                of("Error performing POST REDACTED in 1s - HTTP error: error sending request").cause,
                Cause::NoCredentials,
            ),
            (of("something else").cause, Cause::Other),
        ] {
            assert_eq!(found, cause);
        }
    }
}
