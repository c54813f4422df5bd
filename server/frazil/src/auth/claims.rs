//! What a verified token of an identity provider claims, against what this server asks of it.

use serde_json::{Map, Value};

/// The name of a principal is no longer, in bytes.
const NAME_MAX_BYTES: usize = 512;

/// Groups beyond these are passed over.
const GROUPS_MAX: usize = 1_000;

pub type Claims = Map<String, Value>;

/// What is asked of a token.
#[derive(Debug)]
pub struct Asked<'a> {
    pub issuer: &'a str,
    pub audiences: &'a [String],
    pub principal_claim: &'a str,
    pub groups_claim: Option<&'a str>,
    pub skew_ms: i64,
}

/// Who a token speaks for.
#[derive(Debug, PartialEq, Eq)]
pub struct Who {
    pub name: String,
    pub groups: Vec<String>,
    /// It spoke for them until some time in the past.
    pub has_expired: bool,
}

/// Refused is what was never right here; what was and has expired is told apart.
pub fn judge(claims: &Claims, asked: &Asked<'_>, now_ms: i64) -> Result<Who, String> {
    if claims.get("iss").and_then(Value::as_str) != Some(asked.issuer) {
        return Err("its issuer is not known here".to_owned());
    }
    if !texts(claims.get("aud")).any(|audience| asked.audiences.iter().any(|known| known == audience)) {
        return Err("its audience (aud) is none of those that this server takes".to_owned());
    }
    let expires_ms = time_ms(claims, "exp")?.ok_or("it does not say when it expires (exp)")?;
    let not_before_ms = time_ms(claims, "nbf")?.unwrap_or(i64::MIN);
    if now_ms.saturating_add(asked.skew_ms) < not_before_ms {
        return Err("it does not hold yet (nbf)".to_owned());
    }
    let name = claim(claims, asked.principal_claim).and_then(Value::as_str).filter(|name| is_name(name));
    let name = name.ok_or_else(|| format!("its claim '{}' names no principal", asked.principal_claim))?;
    let groups = asked.groups_claim.and_then(|path| claim(claims, path));
    Ok(Who {
        name: name.to_owned(),
        groups: texts(groups).take(GROUPS_MAX).map(str::to_owned).collect(),
        has_expired: expires_ms.saturating_add(asked.skew_ms) <= now_ms,
    })
}

/// What any log can hold, on one line.
fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= NAME_MAX_BYTES && !name.chars().any(char::is_control)
}

/// A claim by its name, or else by a path of names with dots between them.
fn claim<'a>(claims: &'a Claims, path: &str) -> Option<&'a Value> {
    claims.get(path).or_else(|| {
        let (first, rest) = path.split_once('.')?;
        rest.split('.').try_fold(claims.get(first)?, |value, name| value.get(name))
    })
}

/// One text, or those of a list.
fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let (one, many) = match value {
        Some(Value::Array(many)) => (None, many.as_slice()),
        other => (other, &[][..]),
    };
    one.into_iter().chain(many).filter_map(Value::as_str)
}

/// Seconds since the epoch, whole or not.
fn time_ms(claims: &Claims, name: &str) -> Result<Option<i64>, String> {
    match claims.get(name) {
        None => Ok(None),
        // Beyond what a number of milliseconds can hold it is as good as never.
        Some(value) => match value.as_f64() {
            Some(seconds) => Ok(Some((seconds * 1_000.0) as i64)),
            None => Err(format!("its {name} is no time")),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW_MS: i64 = 1_800_000_000_000;
    const NOW_S: i64 = NOW_MS / 1_000;

    fn judged(change: Value) -> Result<Who, String> {
        let mut claims = json!({"iss": "https://idp", "aud": "frazil", "sub": "etl", "exp": NOW_S + 60});
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let audiences = ["frazil".to_owned(), "lake".to_owned()];
        let asked = Asked {
            issuer: "https://idp",
            audiences: &audiences,
            principal_claim: "sub",
            groups_claim: Some("realm.roles"),
            skew_ms: 30_000,
        };
        judge(claims.as_object().unwrap(), &asked, NOW_MS)
    }

    #[test]
    fn a_token_for_this_server_speaks_for_its_subject() {
        let who = judged(json!({"realm": {"roles": ["a", 1, "b"]}})).unwrap();
        assert_eq!(who, Who { name: "etl".into(), groups: vec!["a".into(), "b".into()], has_expired: false });
        assert_eq!(judged(json!({"aud": ["x", "lake"], "realm.roles": "one"})).unwrap().groups, ["one"]);
    }

    #[test]
    fn what_was_never_right_is_refused_with_its_reason() {
        for (change, told) in [
            (json!({"iss": "https://idp/"}), "issuer"),
            (json!({"iss": null}), "issuer"),
            (json!({"aud": "frazil2"}), "aud"),
            (json!({"aud": []}), "aud"),
            (json!({"aud": null}), "aud"),
            (json!({"exp": "soon"}), "exp"),
            (json!({"exp": null}), "exp"),
            (json!({"nbf": NOW_S + 31}), "nbf"),
            (json!({"nbf": "later"}), "nbf"),
            (json!({"sub": ""}), "sub"),
            (json!({"sub": 7}), "sub"),
            (json!({"sub": "a\nb"}), "sub"),
            (json!({"sub": "x".repeat(513)}), "sub"),
        ] {
            let refused = judged(change.clone()).unwrap_err();
            assert!(refused.contains(told), "{change}: {refused}");
        }
    }

    #[test]
    fn times_hold_within_the_skew() {
        let expired = |exp: i64| judged(json!({"exp": exp})).unwrap().has_expired;
        assert!(!expired(NOW_S - 29) && expired(NOW_S - 30) && expired(0));
        assert!(!judged(json!({"exp": 1e300, "nbf": NOW_S + 30})).unwrap().has_expired);
        assert!(judged(json!({"exp": (NOW_S - 31) as f64 + 0.5})).unwrap().has_expired);
    }
}
