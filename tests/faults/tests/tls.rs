//! Connections to a database that has a certificate.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use faults::child::ordinary_user;
use faults::cluster::Cluster;
use faults::database::number;
use faults::frazil::{Frazil, Launch};
use tempfile::TempDir;

/// A server whose certificate names 127.0.0.1, and the authority that signed it.
struct Secured {
    cluster: Cluster,
    certificates: TempDir,
}

const KEY: [&str; 6] = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout"];

impl Secured {
    fn start() -> Self {
        let certificates = tempfile::tempdir().unwrap();
        let folder = certificates.path();
        std::fs::write(folder.join("names"), "subjectAltName = IP:127.0.0.1\n").unwrap();
        let authority = ["ca.key", "-x509", "-subj", "/CN=authority", "-days", "2", "-out", "ca.pem"];
        openssl(folder, &[&["req"], &KEY[..], &authority].concat());
        openssl(folder, &[&["req"], &KEY[..], &["server.key", "-subj", "/CN=database", "-out", "server.csr"]].concat());
        let sign = ["x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"];
        openssl(folder, &[&sign[..], &["-days", "2", "-extfile", "names", "-out", "server.pem"]].concat());
        hand_over(folder);
        let file = |name: &str| folder.join(name).display().to_string();
        let (certificate, key) = (file("server.pem"), file("server.key"));
        let cluster = Cluster::start(&[("ssl", "on"), ("ssl_cert_file", &certificate), ("ssl_key_file", &key)]);
        Self { cluster, certificates }
    }

    fn launch(&self, host: &str, parameters: &str) -> Launch {
        let authority = self.certificates.path().join("ca.pem");
        let parameters = parameters.replace("CA", &authority.display().to_string());
        Launch::on(&format!("postgres://postgres@{host}:{}/postgres?{parameters}", self.cluster.port))
    }

    /// Whether the sessions of the server that this starts are encrypted.
    async fn is_encrypted(&self, host: &str, parameters: &str) -> bool {
        let mut server = Frazil::start(&self.launch(host, parameters)).await;
        let sessions =
            "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'frazil'";
        let url = self.cluster.url("postgres");
        let (all, plain) = (number(&url, sessions).await, number(&url, &format!("{sessions} AND NOT ssl")).await);
        server.terminate();
        assert!(all > 0 && (plain == 0 || plain == all), "{plain} of {all}");
        plain == 0
    }

    fn refused(&self, host: &str, parameters: &str) -> String {
        Frazil::refused(&self.launch(host, parameters))
    }
}

fn openssl(folder: &Path, arguments: &[&str]) {
    let done = Command::new("openssl").args(arguments).current_dir(folder).output().expect("OpenSSL is not installed");
    assert!(done.status.success(), "openssl {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// PostgreSQL takes a key that nobody else can read.
fn hand_over(folder: &Path) {
    std::fs::set_permissions(folder.join("server.key"), PermissionsExt::from_mode(0o600)).unwrap();
    if let Some((uid, gid)) = ordinary_user() {
        for path in [folder.to_owned(), folder.join("server.key"), folder.join("server.pem")] {
            chown(path, Some(uid), Some(gid)).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_as_secure_as_its_url_asks() {
    let secured = Secured::start();
    for (host, parameters, encrypted) in [
        ("127.0.0.1", "sslmode=disable", false),
        ("127.0.0.1", "", true),
        ("127.0.0.1", "sslmode=require", true),
        ("localhost", "sslmode=verify-ca&sslrootcert=CA", true),
        ("127.0.0.1", "sslmode=verify-full&sslrootcert=CA", true),
    ] {
        assert_eq!(secured.is_encrypted(host, parameters).await, encrypted, "{host} {parameters}");
    }
    let unknown = secured.refused("127.0.0.1", "sslmode=verify-full");
    assert!(unknown.contains("the database cannot be reached") && unknown.contains("UnknownIssuer"), "{unknown}");
    let misnamed = secured.refused("localhost", "sslmode=verify-full&sslrootcert=CA");
    assert!(misnamed.contains("not valid for name"), "{misnamed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_without_a_certificate_is_refused_where_encryption_is_asked_for() {
    let cluster = Cluster::start(&[]);
    let url = cluster.url("postgres").replace("sslmode=disable", "sslmode=require");
    let log = Frazil::refused(&Launch::on(&url));
    assert!(log.contains("does not support TLS"), "{log}");
}
