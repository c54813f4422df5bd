//! The certificate of the server, read again when its files change.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_util::sync::CancellationToken;

/// How often there is a look at the files.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The versions of HTTP that a client may choose from, the better one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// What handshakes that begin now use.
pub type Current = watch::Receiver<Arc<ServerConfig>>;

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {path}")]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("server.tls.cert_file {path} holds no certificate in PEM")]
    NoCertificate { path: PathBuf },
    #[error("server.tls.key_file {path} holds no private key in PEM")]
    NoKey { path: PathBuf },
    /// Of another key, for instance.
    #[error("the certificate in {path} cannot be used with its key")]
    Refused { path: PathBuf, source: rustls::Error },
}

/// The files, and what was read of them last.
pub struct Certificate {
    files: Files,
    /// Of the files as they were looked at last, good or not.
    seen: Option<Fingerprint>,
    current: watch::Sender<Arc<ServerConfig>>,
}

type Fingerprint = [u8; 32];

#[derive(Clone)]
struct Files {
    cert: PathBuf,
    key: PathBuf,
}

/// The files as they are at one time.
struct Pems {
    cert: Vec<u8>,
    key: Vec<u8>,
}

impl Certificate {
    /// Reads it for the first time; what is wrong with it is told.
    pub async fn read(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let files = Files { cert: cert.to_owned(), key: key.to_owned() };
        let pems = files.read().await?;
        let (current, _) = watch::channel(Arc::new(files.config(&pems)?));
        Ok(Self { files, seen: Some(pems.fingerprint()), current })
    }

    pub fn current(&self) -> Current {
        self.current.subscribe()
    }

    /// Looks at the files until `end`. What cannot be used is told once, and changes nothing.
    pub async fn keep_fresh(mut self, end: CancellationToken) {
        while end.run_until_cancelled(sleep(LOOK_EVERY)).await.is_some() {
            match self.renew().await {
                Ok(false) => {}
                Ok(true) => tracing::info!(path = %self.files.cert.display(), "the certificate was read again"),
                Err(error) => tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the changed certificate cannot be used: the one before stays"
                ),
            }
        }
    }

    /// Whether there is a new certificate.
    async fn renew(&mut self) -> Result<bool, TlsError> {
        let read = self.files.read().await;
        let seen = read.as_ref().ok().map(Pems::fingerprint);
        if seen == self.seen {
            return Ok(false);
        }
        self.seen = seen;
        let config = self.files.config(&read?)?;
        self.current.send_replace(Arc::new(config));
        Ok(true)
    }
}

impl Files {
    async fn read(&self) -> Result<Pems, TlsError> {
        Ok(Pems { cert: read_file(&self.cert).await?, key: read_file(&self.key).await? })
    }

    fn config(&self, pems: &Pems) -> Result<ServerConfig, TlsError> {
        let path = || self.cert.clone();
        let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(&pems.cert).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| TlsError::NoCertificate { path: path() })?;
        let key = PrivateKeyDer::from_pem_slice(&pems.key).map_err(|_| TlsError::NoKey { path: self.key.clone() })?;
        let refused = |source| TlsError::Refused { path: path(), source };
        let provider = Arc::new(aws_lc_rs::default_provider());
        let versions = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut config =
            versions.map_err(refused)?.with_no_client_auth().with_single_cert(chain, key).map_err(refused)?;
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
        Ok(config)
    }
}

impl Pems {
    fn fingerprint(&self) -> Fingerprint {
        let mut hash = Sha256::new();
        for text in [&self.cert, &self.key] {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        }
        hash.finalize().into()
    }
}

async fn read_file(path: &Path) -> Result<Vec<u8>, TlsError> {
    tokio::fs::read(path).await.map_err(|source| TlsError::Unreadable { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn write(dir: &TempDir, pem: [&str; 2]) -> [PathBuf; 2] {
        let files = ["cert.pem", "key.pem"].map(|name| dir.path().join(name));
        files.iter().zip(pem).for_each(|(file, pem)| std::fs::write(file, pem).unwrap());
        files
    }

    fn pair() -> [String; 2] {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        [made.cert.pem(), made.signing_key.serialize_pem()]
    }

    #[tokio::test]
    async fn a_broken_file_keeps_the_certificate_before_it() {
        let (dir, first, second) = (tempfile::tempdir().unwrap(), pair(), pair());
        let [cert, key] = write(&dir, [&first[0], &first[1]]);
        let mut certificate = Certificate::read(&cert, &key).await.unwrap();
        let (current, was) = (certificate.current(), certificate.current().borrow().clone());
        assert!(!certificate.renew().await.unwrap());
        for broken in [["", &first[1]], [&second[0], &first[1]], [&second[0], ""]] {
            write(&dir, broken);
            certificate.renew().await.unwrap_err();
            // It is told once.
            assert!(!certificate.renew().await.unwrap());
            assert!(Arc::ptr_eq(&current.borrow(), &was));
        }
        std::fs::remove_file(&cert).unwrap();
        assert!(matches!(certificate.renew().await, Err(TlsError::Unreadable { .. })));
        assert!(!certificate.renew().await.unwrap());
        write(&dir, [&second[0], &second[1]]);
        assert!(certificate.renew().await.unwrap());
        assert!(!Arc::ptr_eq(&current.borrow(), &was));
    }

    #[tokio::test]
    async fn what_cannot_be_used_at_the_start_is_told_by_its_file() {
        let (dir, one, other) = (tempfile::tempdir().unwrap(), pair(), pair());
        for (pem, told) in [
            (["nothing", &one[1]], "cert.pem holds no certificate"),
            ([&one[0], "nothing"], "key.pem holds no private key"),
            ([&one[0], &other[1]], "cannot be used with its key"),
        ] {
            let [cert, key] = write(&dir, pem);
            let error = Certificate::read(&cert, &key).await.err().unwrap().to_string();
            assert!(error.contains(told), "{error}");
        }
        let error = Certificate::read(Path::new("/no/such"), Path::new("/no/such")).await.err().unwrap();
        assert_eq!(error.to_string(), "cannot read /no/such");
    }
}
