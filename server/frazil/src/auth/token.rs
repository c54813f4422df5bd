//! A signed token: what it says of itself, and what it claims once a key has verified it.

use jsonwebtoken::dangerous::insecure_decode_claims;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// What a token says of itself, believed by nobody: it tells which keys to try.
#[derive(Debug, PartialEq, Eq)]
pub struct Told {
    pub issuer: String,
    pub key_id: Option<String>,
    pub algorithm: Algorithm,
}

/// `None` for what is no token that could be verified.
pub fn peek(token: &str) -> Option<Told> {
    #[derive(Deserialize)]
    struct Issued {
        iss: String,
    }
    let header = decode_header(token).ok()?;
    let Issued { iss } = insecure_decode_claims(token).ok()?;
    Some(Told { issuer: iss, key_id: header.kid, algorithm: header.alg })
}

/// The claims, if the key has signed them with that very algorithm. Times and audience are not looked at here.
pub fn verified<T: DeserializeOwned>(token: &str, key: &DecodingKey, algorithm: Algorithm) -> Option<T> {
    let mut signature_alone = Validation::new(algorithm);
    signature_alone.validate_exp = false;
    signature_alone.validate_aud = false;
    signature_alone.required_spec_claims.clear();
    decode(token, key, &signature_alone).ok().map(|verified| verified.claims)
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn token(header: &str, claims: &str) -> String {
        format!("{}.{}.c2ln", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims))
    }

    #[test]
    fn a_token_says_who_made_it_and_how() {
        let told = peek(&token(r#"{"alg":"ES256","kid":"k"}"#, r#"{"iss":"https://idp"}"#));
        let expected = Told { issuer: "https://idp".into(), key_id: Some("k".into()), algorithm: Algorithm::ES256 };
        assert_eq!(told, Some(expected));
    }

    #[test]
    fn what_is_no_signed_token_of_somebody_says_nothing() {
        for text in [
            String::new(),
            "garbage".into(),
            "a.b.c".into(),
            token(r#"{"alg":"none"}"#, r#"{"iss":"x"}"#),
            token(r#"{"alg":"HS256"}"#, r#"{"exp":1}"#),
            token(r#"{"alg":"HS256"}"#, r#"{"iss":["x"]}"#),
        ] {
            assert_eq!(peek(&text), None, "{text}");
        }
    }
}
