//! Settings that are secret, or may hold a secret, and never show it.

use std::convert::Infallible;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// The URL with its secrets, for the driver alone.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn scheme(&self) -> &str {
        self.0.split_once(':').map_or("", |(scheme, _)| scheme)
    }

    pub fn is_postgres(&self) -> bool {
        ["postgres", "postgresql"].contains(&self.scheme())
    }

    /// The URL without the password of its user and without secret parameters.
    fn masked(&self) -> String {
        let (url, query) = self.0.split_once('?').map_or((self.0.as_str(), None), |(url, query)| (url, Some(query)));
        let url = match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?))) {
            Some((scheme, (user, host))) => format!("{scheme}://{}@{host}", mask_password(user)),
            None => url.to_owned(),
        };
        match query {
            Some(query) => format!("{url}?{}", query.split('&').map(mask_parameter).collect::<Vec<_>>().join("&")),
            None => url,
        }
    }
}

fn mask_password(user: &str) -> String {
    user.split_once(':').map_or_else(|| user.to_owned(), |(name, _)| format!("{name}:***"))
}

fn mask_parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((key, _)) if key.contains("password") => format!("{key}=***"),
        _ => parameter.to_owned(),
    }
}

impl From<String> for DatabaseUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for DatabaseUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.masked())
    }
}

/// A setting that is shown as `***` wherever it is printed.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Hidden(String);

impl Hidden {
    /// The setting itself, for the one who uses it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// For the command line: takes any text, for a refused one would be printed.
    pub fn parse(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl From<String> for Hidden {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Serialize for Hidden {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_way_of_printing_shows_a_password() {
        for (url, shown) in [
            ("postgres://me:p@ss@db:5432/frazil", "postgres://me:***@db:5432/frazil"),
            (
                "postgres://db/x?user=me&password=secret&sslmode=require",
                "postgres://db/x?user=me&password=***&sslmode=require",
            ),
            ("postgres://me@db/x", "postgres://me@db/x"),
            ("sqlite:frazil-data/frazil.db", "sqlite:frazil-data/frazil.db"),
        ] {
            let url = DatabaseUrl::from(url.to_owned());
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), shown);
            assert_eq!(serde_json::to_string(&url).unwrap(), format!("{shown:?}"));
        }
    }
}
