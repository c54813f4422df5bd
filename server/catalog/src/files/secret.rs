//! Secrets of warehouses: three forms that may be stored, and the key that seals what was given as plain text.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, Kind, Result};

const KEY_BYTES: usize = 32;

/// What a file that holds a secret may have at most, in bytes.
const SECRET_FILE_LIMIT_BYTES: u64 = 64 << 10;

/// The server's own settings, its secrets key among them, are in variables of this prefix.
const OWN_VARIABLES: &str = "FRAZIL_";

/// What the system tells of the process, its variables among them.
const OF_THE_PROCESS: &str = "/proc";

/// A text that is never printed: `env:NAME` and `file:PATH` say where the secret is, `sealed:…` holds it encrypted, and
/// anything else is the secret itself, which is sealed before it is stored.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

/// The forms of a [`Secret`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form<'a> {
    Env(&'a str),
    File(&'a Path),
    Sealed(&'a str),
    Plain(&'a str),
}

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Whether it only says where the secret is, so that it may be shown.
    pub fn is_reference(&self) -> bool {
        matches!(self.form(), Form::Env(_) | Form::File(_))
    }

    /// The text as it is: of an opened secret, the secret itself.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    pub(super) fn is_sealed(&self) -> bool {
        matches!(self.form(), Form::Sealed(_))
    }

    pub(super) fn is_in_file(&self) -> bool {
        matches!(self.form(), Form::File(_))
    }

    pub(super) fn form(&self) -> Form<'_> {
        match self.0.split_once(':') {
            Some(("env", name)) => Form::Env(name),
            Some(("file", path)) => Form::File(Path::new(path)),
            Some(("sealed", sealed)) => Form::Sealed(sealed),
            _ => Form::Plain(&self.0),
        }
    }

    /// The form that may be stored; `field` is bound to it, so that no other field can take it.
    pub(crate) fn seal(&self, field: &str, key: Option<&SecretsKey>) -> Result<Self> {
        match self.form() {
            Form::Env(name) if name.starts_with(OWN_VARIABLES) => Err(Error::invalid(format!(
                "storage {field} names the environment variable {name}: those that begin with {OWN_VARIABLES} are the server's own"
            ))),
            Form::Env("") => Err(Error::invalid(format!("storage {field} names no environment variable after 'env:'"))),
            Form::File(path) if !path.is_absolute() => {
                Err(Error::invalid(format!("storage {field} must name its file by an absolute path after 'file:'")))
            }
            Form::Env(_) | Form::File(_) => Ok(self.clone()),
            Form::Sealed(_) => self.open(field, key).map(|_| self.clone()),
            Form::Plain("") => Err(Error::invalid(format!("storage {field} is empty"))),
            Form::Plain(plain) => match key {
                Some(key) => Ok(Self(format!("sealed:{}", key.seal(field, plain)))),
                None => Err(Error::invalid(format!(
                    "storage {field} cannot be stored, as the server has no key to encrypt it with: set secrets.key or \
                     secrets.key_file, or refer to the secret as 'env:NAME' or 'file:PATH'"
                ))),
            },
        }
    }

    /// Refuses a file that is the server's own, by whatever path. One that cannot be found is told of when it is opened.
    pub(super) fn check_file(&self, field: &str, own_files: &[PathBuf]) -> Result<()> {
        let Form::File(path) = self.form() else {
            return Ok(());
        };
        let Ok(real) = path.canonicalize() else {
            return Ok(());
        };
        let is_own = |own: &PathBuf| own.canonicalize().is_ok_and(|own| own == real);
        if real.starts_with(OF_THE_PROCESS) || own_files.iter().any(is_own) {
            return Err(Error::invalid(format!(
                "storage {field} names the file {}, which is the server's own: keep the secret in another file",
                path.display()
            )));
        }
        Ok(())
    }

    /// As [`Self::reveal`] tells it then: the secret itself. Blocks where it is in a file.
    pub(crate) fn open(&self, field: &str, key: Option<&SecretsKey>) -> Result<Self> {
        self.opened(field, key).map(Self)
    }

    fn opened(&self, field: &str, key: Option<&SecretsKey>) -> Result<String> {
        match self.form() {
            Form::Plain(plain) => Ok(plain.to_owned()),
            Form::Env(name) => std::env::var(name).map_err(|_| {
                unusable(format!(
                    "storage {field} is in the environment variable {name}, which the server does not have"
                ))
            }),
            Form::File(path) => read_text(path, field),
            Form::Sealed(sealed) => match key {
                Some(key) => key.open(field, sealed),
                None => Err(unusable(format!(
                    "storage {field} is encrypted and the server has no key: start it with secrets.key or secrets.key_file"
                ))),
            },
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// The key that secrets of warehouses are sealed with: AES-256-GCM. Cheap to clone.
#[derive(Clone)]
pub struct SecretsKey {
    /// Tells keys apart and nothing about them.
    id: String,
    key: Arc<RandomizedNonceKey>,
}

impl SecretsKey {
    /// Of 32 bytes in base64 or in hexadecimal digits.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let bytes = hex::decode(text).ok().or_else(|| BASE64.decode(text).ok()).unwrap_or_default();
        Self::of(&bytes).ok_or_else(|| {
            Error::invalid("the secrets key must be 32 bytes in base64 or hex; make one with: openssl rand -base64 32")
        })
    }

    /// Out of a file that holds what [`Self::parse`] takes, or the 32 bytes themselves.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = read_small(path).map_err(|unread| {
            let message = format!("the secrets key is in {}, which {}", path.display(), unread.why);
            unread.explain(Error::invalid(message))
        })?;
        match Self::of(&bytes) {
            Some(key) => Ok(key),
            None => Self::parse(&String::from_utf8_lossy(&bytes)),
        }
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != KEY_BYTES {
            return None;
        }
        let id = hex::encode(&Sha256::new().chain_update("frazil secrets key").chain_update(bytes).finalize()[..4]);
        Some(Self { id, key: Arc::new(RandomizedNonceKey::new(&AES_256_GCM, bytes).ok()?) })
    }

    /// `<key id>:<base64 of nonce, ciphertext and tag>`.
    fn seal(&self, field: &str, plain: &str) -> String {
        let mut sealed = plain.as_bytes().to_vec();
        let nonce = self
            .key
            .seal_in_place_append_tag(Aad::from(field.as_bytes()), &mut sealed)
            .expect("a secret is far shorter than what AES-GCM can seal");
        let bytes = [nonce.as_ref(), sealed.as_slice()].concat();
        format!("{}:{}", self.id, BASE64.encode(bytes))
    }

    fn open(&self, field: &str, sealed: &str) -> Result<String> {
        let (id, bytes) = sealed.split_once(':').unwrap_or_default();
        if id != self.id {
            return Err(unusable(format!(
                "storage {field} was encrypted with the key {id} and the server has the key {}: start it with the former \
                 key, or give the secret again",
                self.id
            )));
        }
        let damaged = || unusable(format!("storage {field} cannot be decrypted: give the secret again"));
        let mut bytes = BASE64.decode(bytes).map_err(|_| damaged())?;
        let (nonce, rest) = bytes.split_at_mut_checked(NONCE_LEN).ok_or_else(damaged)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| damaged())?;
        let plain = self.key.open_in_place(nonce, Aad::from(field.as_bytes()), rest).map_err(|_| damaged())?;
        String::from_utf8(plain.to_vec()).map_err(|_| damaged())
    }
}

impl fmt::Debug for SecretsKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretsKey({})", self.id)
    }
}

/// The settings are right and the server cannot use them yet: the same request may pass once that is mended.
fn unusable(message: String) -> Error {
    Error::new(Kind::Unavailable, message)
}

/// Why a file cannot be used: what to say of it, and what the system said.
struct Unread {
    why: &'static str,
    source: Option<std::io::Error>,
}

impl Unread {
    fn explain(self, error: Error) -> Error {
        match self.source {
            Some(source) => error.with_source(source),
            None => error,
        }
    }
}

/// The whole file, if it is one and small: a device or a pipe has no size and may have no end.
fn read_small(path: &Path) -> std::result::Result<Vec<u8>, Unread> {
    let unreadable = |source| Unread { why: "the server cannot read", source: Some(source) };
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(Unread { why: "is no regular file", source: None });
    }
    let mut bytes = Vec::new();
    let limited = File::open(path).map_err(unreadable)?.take(SECRET_FILE_LIMIT_BYTES + 1).read_to_end(&mut bytes);
    limited.map_err(unreadable)?;
    match bytes.len() as u64 > SECRET_FILE_LIMIT_BYTES {
        true => Err(Unread { why: "is too large for a secret", source: None }),
        false => Ok(bytes),
    }
}

/// Without the line ends that editors leave.
fn read_text(path: &Path, field: &str) -> Result<String> {
    let failed = |why: &str| unusable(format!("storage {field} is in the file {}, which {why}", path.display()));
    let bytes = read_small(path).map_err(|unread| {
        let error = failed(unread.why);
        unread.explain(error)
    })?;
    let text = String::from_utf8(bytes).map_err(|_| failed("is no text"))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> SecretsKey {
        SecretsKey::parse(&hex::encode([byte; KEY_BYTES])).unwrap()
    }

    fn sealed(plain: &str) -> Secret {
        Secret::new(plain).seal("field", Some(&key(1))).unwrap()
    }

    #[test]
    fn what_is_sealed_is_opened_by_the_same_key_and_for_the_same_field() {
        let secret = sealed("hush");
        assert!(!secret.0.contains("hush") && secret.0.starts_with("sealed:"), "{}", secret.0);
        assert_ne!(secret, sealed("hush"), "no two nonces are the same");
        assert_eq!(secret.open("field", Some(&key(1))).unwrap(), Secret::new("hush"));
        assert!(secret.open("other", Some(&key(1))).unwrap_err().message().contains("cannot be decrypted"));
        assert_eq!(secret.seal("field", Some(&key(1))).unwrap(), secret, "sealing again changes nothing");
    }

    #[test]
    fn a_wrong_key_is_told_with_both_ids() {
        let message = sealed("hush").open("field", Some(&key(2))).unwrap_err().message().to_owned();
        assert!(message.contains(&key(1).id) && message.contains(&key(2).id), "{message}");
        assert!(sealed("hush").open("field", None).unwrap_err().message().contains("secrets.key"));
    }

    #[test]
    fn a_damaged_seal_is_refused() {
        let secret = sealed("hush");
        let last = secret.0.len() - 3;
        let other = if secret.0.as_bytes()[last] == b'A' { "B" } else { "A" };
        let mut damaged = secret.0.clone();
        damaged.replace_range(last..=last, other);
        for text in
            [damaged, "sealed:".to_owned(), format!("sealed:{}:AAAA", key(1).id), format!("sealed:{}:?", key(1).id)]
        {
            assert!(Secret::new(text.clone()).open("field", Some(&key(1))).is_err(), "{text}");
        }
    }

    #[test]
    fn a_literal_secret_needs_a_key_and_a_reference_needs_none() {
        let message = Secret::new("hush").seal("field", None).unwrap_err().message().to_owned();
        assert!(
            message.contains("secrets.key") && message.contains("env:NAME") && !message.contains("hush"),
            "{message}"
        );
        for text in ["env:NAME", "file:/run/secret"] {
            assert_eq!(Secret::new(text).seal("field", None).unwrap(), Secret::new(text));
        }
    }

    #[test]
    fn references_that_lead_nowhere_are_refused() {
        for text in ["env:", "env:FRAZIL_SECRETS__KEY", "file:", "file:relative", ""] {
            assert!(Secret::new(text).seal("field", Some(&key(1))).is_err(), "{text}");
        }
    }

    #[test]
    fn references_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        std::fs::write(&path, "hush\n").unwrap();
        let in_file = Secret::new(format!("file:{}", path.display()));
        assert_eq!(in_file.open("field", None).unwrap().reveal(), "hush");
        let in_environment = Secret::new("env:PATH");
        assert_eq!(in_environment.open("field", None).unwrap().reveal(), std::env::var("PATH").unwrap());
        assert!(Secret::new("env:NO_SUCH_VARIABLE").open("field", None).unwrap_err().message().contains("NO_SUCH"));
        assert!(Secret::new("file:/no/such").open("field", None).unwrap_err().message().contains("/no/such"));
    }

    #[test]
    fn no_file_of_the_server_is_a_secret_of_a_warehouse() {
        let folder = tempfile::tempdir().unwrap();
        let (own, link, other) = (folder.path().join("own"), folder.path().join("link"), folder.path().join("other"));
        for path in [&own, &other] {
            std::fs::write(path, "hush").unwrap();
        }
        std::os::unix::fs::symlink(&own, &link).unwrap();
        let own_files = [own.clone()];
        let checked =
            |path: &Path| Secret::new(format!("file:{}", path.display())).check_file("session-token", &own_files);
        for path in [&own, &link, &folder.path().join("./own"), Path::new("/proc/self/environ")] {
            let error = checked(path).unwrap_err();
            assert!(error.message().contains("the server's own"), "{error}");
        }
        for path in [&other, Path::new("/no/such")] {
            checked(path).unwrap();
        }
        Secret::new("env:PATH").check_file("session-token", &own_files).unwrap();
    }

    #[test]
    fn no_file_is_read_without_a_bound() {
        let folder = tempfile::tempdir().unwrap();
        let large = folder.path().join("large");
        std::fs::write(&large, "x".repeat(SECRET_FILE_LIMIT_BYTES as usize + 1)).unwrap();
        let message = |path: &str| {
            let secret = Secret::new(format!("file:{path}"));
            secret.open("field", None).unwrap_err().message().to_owned()
        };
        assert!(message(&large.display().to_string()).contains("too large"));
        assert!(SecretsKey::read(&large).unwrap_err().message().contains("too large"));
        for endless in ["/dev/zero", "/dev"] {
            assert!(message(endless).contains("no regular file"), "{endless}");
            assert!(SecretsKey::read(Path::new(endless)).unwrap_err().message().contains("no regular file"));
        }
    }

    #[test]
    fn a_key_is_text_in_two_spellings_or_a_file() {
        let bytes = [7; KEY_BYTES];
        let folder = tempfile::tempdir().unwrap();
        let file = |content: &[u8]| {
            let path = folder.path().join("key");
            std::fs::write(&path, content).unwrap();
            SecretsKey::read(&path).unwrap()
        };
        let base64 = format!("{}\n", BASE64.encode(bytes));
        let keys = [SecretsKey::parse(&hex::encode(bytes)).unwrap(), SecretsKey::parse(&base64).unwrap()];
        let read = [file(base64.as_bytes()), file(&bytes)];
        assert!(keys.iter().chain(&read).all(|key| key.id == keys[0].id));
        for text in ["", "short", &hex::encode([7; 31]), "not base64 and not hex either, whatever the length"] {
            assert!(SecretsKey::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn nothing_secret_is_printed() {
        assert_eq!(format!("{:?}", Secret::new("hush")), "[secret]");
        assert!(!format!("{:?}", key(0x55)).contains("5555"));
    }
}
