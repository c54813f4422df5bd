use figment::providers::Serialized;

use super::*;

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("frazil.toml");
    std::fs::write(&path, text).unwrap();
    (dir, path)
}

fn load(toml: &str, env: &[(&str, &str)], flags: impl Provider) -> Result<Config, ConfigError> {
    let (_dir, path) = file(toml);
    let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::load(Some(&path), env, flags)
}

fn no_flags() -> Serialized<BTreeMap<String, String>> {
    Serialized::defaults(BTreeMap::new())
}

#[test]
fn without_anything_the_defaults_hold() {
    let config = Config::load(None, [], no_flags()).unwrap();
    assert_eq!(config, Config::default());
    assert_eq!(config.database_url().to_string(), "sqlite:frazil-data/frazil.db");
}

#[test]
fn flags_win_over_variables_and_variables_over_the_file() {
    let toml = "[server]\nlisten = '127.0.0.1:1'\nconnections = 1\nheader_timeout_ms = 1\n";
    let env = [("FRAZIL_SERVER_LISTEN", "127.0.0.1:2"), ("FRAZIL_SERVER_CONNECTIONS", "2"), ("PATH", "/bin")];
    let config = load(toml, &env, Serialized::default("server.listen", "127.0.0.1:3")).unwrap();
    assert_eq!(config.server.listen.port(), 3);
    assert_eq!((config.server.connections, config.server.header_timeout_ms), (2, 1));
}

#[test]
fn a_value_that_would_stop_everything_is_told_with_its_key() {
    for (toml, key) in [
        ("[limits]\nconcurrent_requests = 0\n", "limits.concurrent_requests"),
        ("[server]\nconnections = 0\n", "server.connections"),
        ("[commit]\ndeadline_ms = 0\n", "commit.deadline_ms"),
        ("[commit]\nmetadata_delete_grace_ms = -1\n", "commit.metadata_delete_grace_ms"),
        ("[database]\nurl = 'mysql://x/y'\n", "database.url"),
        ("[database]\nreplica_url = 'postgres://x/y'\n", "database.replica_url"),
        ("[database]\nwait_ms = 0\n", "database.wait_ms"),
        ("[storage]\nallowed_locations = ['tmp']\n", "storage.allowed_locations"),
    ] {
        let message = load(toml, &[], no_flags()).unwrap_err().to_string();
        assert!(message.starts_with(key), "{message}");
    }
}

#[test]
fn an_unknown_key_names_the_nearest_one() {
    for (toml, nearest) in [
        ("[server]\nlistn = 'x'\n", "server.listen"),
        ("listen = 'x'\n", "server.listen"),
        ("[databse]\nurl = 'x'\n", "database.url"),
    ] {
        let message = load(toml, &[], no_flags()).unwrap_err().to_string();
        assert!(message.contains(&format!("the nearest one is '{nearest}'")), "{message}");
    }
    let message = load("", &[("FRAZIL_COMMIT_DEADLINE", "1")], no_flags()).unwrap_err().to_string();
    assert!(message.contains("'FRAZIL_COMMIT_DEADLINE_MS'"), "{message}");
}

#[test]
fn every_setting_has_a_variable() {
    let env = [
        ("FRAZIL_DATABASE_URL", "postgres://me:hush@db/frazil"),
        ("FRAZIL_STORAGE_ALLOWED_LOCATIONS", "s3://a/b,file:///tmp"),
        ("FRAZIL_LOG_FORMAT", "json"),
        ("FRAZIL_SERVER_INSECURE", "true"),
        ("FRAZIL_SERVER_LISTEN", "0.0.0.0:8181"),
    ];
    let config = load("", &env, no_flags()).unwrap();
    assert_eq!(config.storage.allowed_locations, ["s3://a/b", "file:///tmp"]);
    assert_eq!(config.log.format, LogFormat::Json);
    let shown = config.to_string();
    assert!(shown.contains("postgres://me:***@db/frazil") && !shown.contains("hush"), "{shown}");
}

#[test]
fn the_secrets_key_is_read_and_never_shown() {
    let digits = "12".repeat(32);
    let config = load("", &[("FRAZIL_SECRETS_KEY", &digits)], no_flags()).unwrap();
    assert!(config.secrets.read().unwrap().is_some());
    let shown = format!("{config}{config:?}");
    assert!(shown.contains("key = \"***\"") && !shown.contains(&digits), "{shown}");
    let (_dir, path) = file(&digits);
    let toml = format!("[secrets]\nkey_file = {path:?}\n");
    assert!(load(&toml, &[], no_flags()).unwrap().secrets.read().unwrap().is_some());
    assert!(Config::default().secrets.read().unwrap().is_none());
}

#[test]
fn a_secrets_key_that_cannot_be_is_refused_by_its_setting() {
    let digits = "12".repeat(32);
    for (toml, key) in [
        ("[secrets]\nkey = 'hush'\n".to_owned(), "secrets.key: "),
        ("[secrets]\nkey_file = '/no/such/file'\n".to_owned(), "secrets.key_file: "),
        (format!("[secrets]\nkey = '{digits}'\nkey_file = '/x'\n"), "secrets.key and secrets.key_file"),
    ] {
        let message = load(&toml, &[], no_flags()).unwrap_err().to_string();
        assert!(message.starts_with(key) && !message.contains("hush"), "{message}");
    }
}

#[test]
fn a_file_that_is_no_toml_is_told_without_its_lines() {
    let message = load("[secrets]\nkey = hush\n", &[], no_flags()).unwrap_err().to_string();
    assert!(message.contains("in line 2") && !message.contains("hush"), "{message}");
}

#[test]
fn the_variable_of_the_commands_is_no_setting() {
    assert_eq!(load("", &[("FRAZIL_SERVER", "http://x")], no_flags()).unwrap(), Config::default());
}

#[test]
fn an_address_that_others_can_reach_needs_insecure() {
    let env = [("FRAZIL_SERVER_LISTEN", "0.0.0.0:8181")];
    let message = load("", &env, no_flags()).unwrap_err().to_string();
    assert!(message.contains("--insecure"), "{message}");
}

#[test]
fn a_value_of_the_wrong_kind_is_told_with_its_key() {
    let error = load("[limits]\nbody_bytes = 'many'\n", &[], no_flags()).unwrap_err();
    assert!(error.to_string().contains("limits.body_bytes"), "{error}");
}

#[test]
fn issuers_are_tables_in_a_file_and_a_line_of_toml_elsewhere() {
    let toml = "[[auth.issuers]]\nissuer = 'https://idp.example'\naudiences = ['frazil']\n";
    let line = "[{ issuer = 'https://idp.example', audiences = ['frazil'] }]";
    let expected = IssuerConfig {
        issuer: "https://idp.example".to_owned(),
        audiences: vec!["frazil".to_owned()],
        algorithms: vec![SigningAlgorithm::Rs256],
        jwks_url: None,
        ca_file: None,
        token_file: None,
        principal_claim: "sub".to_owned(),
        groups_claim: None,
    };
    let from_file = load(toml, &[], no_flags()).unwrap();
    let from_variable = load("", &[("FRAZIL_AUTH_ISSUERS", line)], no_flags()).unwrap();
    assert_eq!(from_file.auth.issuers, [expected]);
    assert_eq!(from_variable, from_file);
    // What is printed is what can be read.
    assert_eq!(load(&from_file.to_string(), &[], no_flags()).unwrap().auth, from_file.auth);
}

#[test]
fn an_issuer_that_proves_nothing_is_refused_by_its_setting() {
    let issuer = |rest: &str| format!("[[auth.issuers]]\nissuer = 'https://idp'\naudiences = ['frazil']\n{rest}");
    for (toml, told) in [
        (issuer("audience = 'x'\n"), "audience"),
        (issuer("algorithms = ['HS256']\n"), "HS256"),
        (issuer("algorithms = ['none']\n"), "none"),
        (issuer("algorithms = []\n"), "auth.issuers[0].algorithms"),
        (issuer("jwks_url = 'http://idp/keys'\n"), "auth.issuers[0].jwks_url"),
        (issuer(&issuer("")), "auth.issuers[1].issuer"),
        ("[[auth.issuers]]\nissuer = 'https://idp'\naudiences = []\n".to_owned(), "auth.issuers[0].audiences"),
        ("[[auth.issuers]]\nissuer = 'http://idp'\naudiences = ['x']\n".to_owned(), "auth.issuers[0].issuer"),
        ("[auth]\ntoken_lifetime_ms = 1\n".to_owned(), "auth.token_lifetime_ms"),
        ("[auth]\nrefusals_per_minute = 0\n".to_owned(), "auth.refusals_per_minute"),
    ] {
        let message = load(&toml, &[], no_flags()).unwrap_err().to_string();
        assert!(message.contains(told), "{toml}: {message}");
    }
    for line in ["https://idp", "[{ issuer = }]"] {
        let message = load("", &[("FRAZIL_AUTH_ISSUERS", line)], no_flags()).unwrap_err().to_string();
        assert!(message.contains("auth.issuers"), "{message}");
    }
}

#[test]
fn an_address_that_others_can_reach_needs_somebody_to_ask() {
    let env = [("FRAZIL_SERVER_LISTEN", "0.0.0.0:8181"), ("FRAZIL_AUTH_PRINCIPALS", "true")];
    assert!(!load("", &env, no_flags()).unwrap().server.insecure);
}

#[test]
fn what_commands_show_to_a_server_is_no_setting() {
    let env = [("FRAZIL_TOKEN", "hush"), ("FRAZIL_CREDENTIAL", "fp_1:fs_2")];
    assert_eq!(load("", &env, no_flags()).unwrap(), Config::default());
}
