use super::*;

fn s3() -> S3Storage {
    S3Storage {
        endpoint: Some("http://127.0.0.1:9000".to_owned()),
        region: Some("eu-west-1".to_owned()),
        path_style: true,
        access_key_id: Some("id".to_owned()),
        secret_access_key: Some(Secret::new("hush")),
        session_token: None,
    }
}

fn key() -> SecretsKey {
    SecretsKey::parse(&"ab".repeat(32)).unwrap()
}

#[test]
fn settings_are_read_back_as_they_were_written() {
    for (storage, text) in [
        (Storage::File, r#"{"type":"file"}"#),
        (Storage::S3(S3Storage::default()), r#"{"type":"s3","path-style":false}"#),
        (Storage::Gcs(GcsStorage::default()), r#"{"type":"gcs"}"#),
        (Storage::Adls(AdlsStorage::default()), r#"{"type":"adls"}"#),
        (
            Storage::S3(s3()),
            r#"{"type":"s3","endpoint":"http://127.0.0.1:9000","region":"eu-west-1","path-style":true,"access-key-id":"id","secret-access-key":"hush"}"#,
        ),
    ] {
        assert_eq!(serde_json::to_string(&storage).unwrap(), text);
        assert_eq!(serde_json::from_str::<Storage>(text).unwrap(), storage);
    }
    assert_eq!(serde_json::from_str::<Storage>(r#"{"type":"s3"}"#).unwrap(), Storage::S3(S3Storage::default()));
}

#[test]
fn an_unknown_setting_is_refused_by_name() {
    let error = serde_json::from_str::<Storage>(r#"{"type":"s3","pathstyle":true}"#).unwrap_err();
    assert!(error.to_string().contains("pathstyle"), "{error}");
    assert!(serde_json::from_str::<Storage>(r#"{"type":"ftp"}"#).is_err());
}

#[test]
fn settings_fit_their_own_kind_of_store() {
    let locations = ["file:///x", "s3a://b/x", "gs://b/x", "wasbs://c@a.blob.core.windows.net/x"];
    for (i, one) in locations.iter().enumerate() {
        let storage = Storage::for_location(&Location::parse(one).unwrap());
        for (j, other) in locations.iter().enumerate() {
            assert_eq!(storage.fits(&Location::parse(other).unwrap()), i == j, "{one} {other}");
        }
    }
}

#[test]
fn what_is_shown_holds_references_and_no_secrets() {
    let storage = Storage::S3(S3Storage { session_token: Some(Secret::new("env:TOKEN")), ..s3() });
    for storage in [storage.clone(), storage.sealed(Some(&key())).unwrap()] {
        let shown = serde_json::to_string(&storage.redacted()).unwrap();
        assert!(shown.contains("env:TOKEN") && !shown.contains("secret-access-key"), "{shown}");
        assert!(!format!("{storage:?}").contains("hush"));
    }
}

#[test]
fn sealed_settings_open_to_what_they_were() {
    let storage = Storage::S3(s3());
    let sealed = storage.sealed(Some(&key())).unwrap();
    assert!(!serde_json::to_string(&sealed).unwrap().contains("hush"));
    assert_eq!(sealed.opened(Some(&key())).unwrap(), storage);
    assert!(storage.sealed(None).unwrap_err().message().contains("secret-access-key"));
}

#[test]
fn clients_are_told_the_way_and_no_credentials() {
    let told = |storage: Storage| -> Vec<(String, String)> { storage.client_config().into_iter().collect() };
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    assert_eq!(
        told(Storage::S3(s3())),
        pairs(&[
            ("client.region", "eu-west-1"),
            ("s3.endpoint", "http://127.0.0.1:9000"),
            ("s3.path-style-access", "true"),
            ("s3.region", "eu-west-1"),
        ])
    );
    let of_endpoint = told(Storage::S3(S3Storage { region: None, path_style: false, ..s3() }));
    assert!(of_endpoint.contains(&("client.region".to_owned(), "us-east-1".to_owned())));
    let gcs = GcsStorage { endpoint: Some("http://localhost:1".to_owned()), anonymous: true, ..GcsStorage::default() };
    assert_eq!(told(Storage::Gcs(gcs)), pairs(&[("gcs.no-auth", "true"), ("gcs.service.host", "http://localhost:1")]));
    for silent in ["file:///x", "s3://b/x", "gs://b/x", "abfss://c@a.dfs.core.windows.net/x"] {
        assert!(told(Storage::for_location(&Location::parse(silent).unwrap())).is_empty(), "{silent}");
    }
}

#[test]
fn settings_that_contradict_each_other_are_refused_by_name() {
    let s3_refusal = |s3: S3Storage| Storage::S3(s3).check().unwrap_err().message().to_owned();
    let endpoint = |endpoint: &str| s3_refusal(S3Storage { endpoint: Some(endpoint.to_owned()), ..s3() });
    let token = Some(Secret::new("token"));
    let adls = |adls: AdlsStorage| Storage::Adls(adls).check().unwrap_err().message().to_owned();
    let secret = || Some(Secret::new("hush"));
    let gcs = GcsStorage { anonymous: true, service_account_key: secret(), ..GcsStorage::default() };
    for (message, named) in [
        (s3_refusal(S3Storage { secret_access_key: None, ..s3() }), "secret-access-key"),
        (s3_refusal(S3Storage { access_key_id: None, ..s3() }), "access-key-id"),
        (s3_refusal(S3Storage { session_token: token, ..S3Storage::default() }), "session-token"),
        (s3_refusal(S3Storage { region: Some("x/y".to_owned()), ..s3() }), "region"),
        (endpoint("127.0.0.1:9000"), "endpoint"),
        (endpoint("ftp://host"), "endpoint"),
        (endpoint("http://id:hush@host"), "credentials"),
        (endpoint("https://id:hu/sh-hush@host"), "no URL of a server"),
        (endpoint("id:hush@host:9000"), "no URL of a server"),
        (endpoint("http://host/?x"), "query"),
        (Storage::Gcs(gcs).check().unwrap_err().message().to_owned(), "anonymous"),
        (adls(AdlsStorage { account_key: secret(), sas_token: secret(), ..AdlsStorage::default() }), "sas-token"),
        (adls(AdlsStorage { client_secret: secret(), ..AdlsStorage::default() }), "tenant-id"),
    ] {
        assert!(message.contains(named) && !message.contains("hush"), "{message}");
    }
}

#[test]
fn a_secret_left_out_is_kept_where_its_name_stays() {
    let mut new = Storage::S3(S3Storage { secret_access_key: None, region: None, ..s3() });
    new.keep_secrets(&Storage::S3(s3())).unwrap();
    assert_eq!(new, Storage::S3(S3Storage { region: None, ..s3() }));
    let other = S3Storage { access_key_id: Some("other".to_owned()), secret_access_key: None, ..s3() };
    let (mut kept, before) = (Storage::S3(other.clone()), Storage::S3(other));
    kept.keep_secrets(&Storage::S3(s3())).unwrap();
    assert_eq!(kept, before);
}

#[test]
fn a_secret_left_out_gives_no_way_to_the_servers_own() {
    let text = |text: &str| Some(text.to_owned());
    let gcs = GcsStorage { service_account_key: Some(Secret::new("hush")), ..GcsStorage::default() };
    let adls = AdlsStorage { sas_token: Some(Secret::new("hush")), client_id: text("a"), ..AdlsStorage::default() };
    let without = AdlsStorage { sas_token: None, ..adls.clone() };
    let (gcs, adls) = (Storage::Gcs(gcs), Storage::Adls(adls));
    for (stored, mut same) in [(&gcs, Storage::Gcs(GcsStorage::default())), (&adls, Storage::Adls(without.clone()))] {
        same.keep_secrets(stored).unwrap();
        assert_eq!(same, *stored);
    }
    for (stored, mut new, named) in [
        (
            &gcs,
            Storage::Gcs(GcsStorage { endpoint: text("https://x"), ..GcsStorage::default() }),
            "service-account-key",
        ),
        (&adls, Storage::Adls(AdlsStorage { endpoint: text("https://x"), ..without.clone() }), "sas-token"),
        (&adls, Storage::Adls(AdlsStorage { client_id: text("b"), ..without.clone() }), "client-id"),
    ] {
        let error = new.keep_secrets(stored).unwrap_err();
        assert!(error.message().contains(named) && !error.message().contains("hush"), "{error}");
        let nothing_to_lose = Storage::Adls(without.clone());
        new.keep_secrets(&nothing_to_lose).unwrap();
    }
    let mut open = Storage::Gcs(GcsStorage { endpoint: text("https://x"), anonymous: true, ..GcsStorage::default() });
    open.keep_secrets(&gcs).unwrap();
}
