//! What is sent to stores that no test can reach: the shape of each request, recorded by a server with canned answers.

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::*;
use crate::error::Kind;

const HUSH: &str = "aHVzaC1odXNo";

fn with_body(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Of an error and of all that lies behind it.
fn whole_text(error: &dyn std::error::Error) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    chain.map(|error| format!("{error} {error:?}")).collect()
}

async fn gcs(storage: GcsStorage, answers: Vec<String>) -> (Place, tokio::task::JoinHandle<Vec<String>>) {
    let (endpoint, server) = canned(answers).await;
    (place("gs://bucket/w", Storage::Gcs(GcsStorage { endpoint: Some(endpoint), ..storage })), server)
}

async fn adls(storage: AdlsStorage, answers: Vec<String>) -> (Place, tokio::task::JoinHandle<Vec<String>>) {
    let (endpoint, server) = canned(answers).await;
    let endpoint = Some(format!("{endpoint}/account"));
    (place("abfss://c@account.dfs.core.windows.net/w", Storage::Adls(AdlsStorage { endpoint, ..storage })), server)
}

#[tokio::test]
async fn a_session_token_goes_with_its_keys_and_a_changed_file_is_read_again() {
    let (mut place, server) = s3(vec![CONTENT, CONTENT]).await;
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    if let Storage::S3(s3) = &mut place.storage {
        s3.session_token = Some(Secret::new(format!("file:{}", token.display())));
    }
    let files = Files::new(FilesOptions { secret_file_max_age: Duration::ZERO, ..FilesOptions::default() }, None);
    for text in ["first", "second"] {
        std::fs::write(&token, text).unwrap();
        files.read(&place, "s3://bucket/w/x", LIMIT_BYTES).await.unwrap();
    }
    let requests = server.await.unwrap();
    for (request, token) in requests.iter().zip(["first", "second"]) {
        assert!(request.contains(&format!("x-amz-security-token: {token}\r\n")), "{request}");
    }
}

#[tokio::test]
async fn a_file_of_the_server_is_sent_nowhere() {
    let (mut place, server) = s3(Vec::new()).await;
    let own = tempfile::NamedTempFile::new().unwrap();
    if let Storage::S3(s3) = &mut place.storage {
        s3.session_token = Some(Secret::new(format!("file:{}", own.path().display())));
    }
    let options = FilesOptions { own_files: Arc::from([own.path().to_owned()]), ..FilesOptions::default() };
    let error = Files::new(options, None).probe(&place, Uuid::from_u128(1)).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Invalid);
    assert!(error.message().contains("the server's own"), "{error}");
    assert!(server.await.unwrap().is_empty());
}

#[tokio::test]
async fn a_refused_request_that_is_quoted_back_leaves_nothing_secret_in_the_error() {
    let body = format!(
        "<Error><Code>SignatureDoesNotMatch</Code><Message>wrong</Message><CanonicalRequest>{HUSH}</CanonicalRequest></Error>"
    );
    for answer in [with_body("403 Forbidden", &body), with_body("400 Bad Request", HUSH)] {
        let (place, server) = s3(vec![answer.as_str()]).await;
        let error = Error::from(files().read(&place, "s3://bucket/w/x", LIMIT_BYTES).await.unwrap_err());
        assert!(!whole_text(&error).contains(HUSH), "{}", whole_text(&error));
        server.await.unwrap();
    }
}

#[tokio::test]
async fn a_bucket_that_is_not_there_is_told_by_name() {
    let answer =
        with_body("404 Not Found", "<Error><Code>NoSuchBucket</Code><Message>It is not there.</Message></Error>");
    let (place, server) = s3(vec![answer.as_str(); 3]).await;
    let error = files().probe(&place, Uuid::from_u128(1)).await.unwrap_err();
    assert!(error.message().contains("there is no bucket 'bucket'"), "{error}");
    let written = files().write_new(&place, "s3://bucket/w/x", Bytes::new()).await;
    assert!(matches!(written, Err(FileError::NoBucket { .. })), "{written:?}");
    assert_eq!(Error::from(written.unwrap_err()).kind(), Kind::Unavailable);
    let read = files().read(&place, "s3://bucket/w/x", LIMIT_BYTES).await;
    assert!(matches!(read, Err(FileError::Missing { .. })), "{read:?}");
    server.await.unwrap();
}

#[tokio::test]
async fn aws_is_asked_for_a_region_that_nobody_names() {
    let (endpoint, proxy) = canned(vec![with_body("502 Bad Gateway", "")]).await;
    let options = object_store::ClientOptions::new().with_proxy_url(endpoint);
    let error = client::region_of("bucket", &options).await.unwrap_err();
    assert!(error.message().contains("storage region"), "{error}");
    let asked = proxy.await.unwrap().remove(0);
    assert!(asked.starts_with("CONNECT bucket.s3.amazonaws.com:443 HTTP/1.1\r\n"), "{asked}");
}

#[tokio::test]
async fn gcs_writes_only_if_absent_and_lists_by_prefix() {
    let anonymous = GcsStorage { anonymous: true, ..GcsStorage::default() };
    let listed = "<ListBucketResult><Contents><Key>w/t/x</Key><Size>3</Size><ETag>e</ETag>\
                  <LastModified>2024-01-01T00:00:00Z</LastModified></Contents></ListBucketResult>";
    let answers = vec![
        OK.to_owned(),
        with_body("412 Precondition Failed", ""),
        CONTENT.to_owned(),
        with_body("200 OK", listed),
        with_body("204 No Content", ""),
    ];
    let (place, server) = gcs(anonymous, answers).await;
    let (files, location) = (files(), "gs://bucket/w/t/x");
    files.write_new(&place, location, Bytes::from_static(b"abc")).await.unwrap();
    let again = files.write_new(&place, location, Bytes::from_static(b"xyz")).await;
    assert!(matches!(again, Err(FileError::AlreadyExists { .. })), "{again:?}");
    assert!(files.named(&place, location).await.unwrap().listed_as_of().await.unwrap().is_some());
    files.delete(&place, location).await.unwrap();
    let requests = server.await.unwrap();
    for request in &requests[..2] {
        assert!(request.starts_with("PUT /bucket/w%2Ft%2Fx HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("x-goog-if-generation-match: 0\r\n"), "{request}");
        assert!(!request.contains("authorization: Bearer e"), "{request}");
    }
    assert!(requests[2].starts_with("GET /bucket/w%2Ft%2Fx"), "{}", requests[2]);
    assert!(requests[3].starts_with("GET /bucket?list-type=2&prefix=w%2Ft%2F"), "{}", requests[3]);
    assert!(requests[4].starts_with("DELETE /bucket/w%2Ft%2Fx"), "{}", requests[4]);
}

#[tokio::test]
async fn gcs_is_asked_in_the_name_of_the_service_account() {
    let pair = KeyPair::generate(KeySize::Rsa2048).unwrap();
    let der: Pkcs8V1Der<'_> = pair.as_der().unwrap();
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", BASE64.encode(der.as_ref()));
    let key = serde_json::json!({
        "type": "service_account", "private_key": pem, "private_key_id": "1", "client_email": "frazil@example.com"
    });
    let storage = GcsStorage { service_account_key: Some(Secret::new(key.to_string())), ..GcsStorage::default() };
    let (place, server) = gcs(storage, vec![CONTENT.to_owned()]).await;
    files().read(&place, "gs://bucket/w/x", LIMIT_BYTES).await.unwrap();
    let request = server.await.unwrap().remove(0);
    assert!(request.contains("authorization: Bearer ey"), "{request}");
}

#[tokio::test]
async fn a_key_that_is_none_is_refused_and_not_quoted() {
    for storage in [
        Storage::Gcs(GcsStorage { service_account_key: Some(Secret::new("\"hush\"")), ..GcsStorage::default() }),
        Storage::Adls(AdlsStorage { account_key: Some(Secret::new("!hush!")), ..AdlsStorage::default() }),
        Storage::Adls(AdlsStorage { sas_token: Some(Secret::new("hush")), ..AdlsStorage::default() }),
    ] {
        let root = if storage.kind() == StoreKind::Gcs { "gs://b/w" } else { "abfss://c@a.dfs.core.windows.net/w" };
        let place = place(root, storage);
        let refused = files().read(&place, &format!("{root}/x"), LIMIT_BYTES).await.unwrap_err();
        let error = Error::from(refused);
        assert_eq!(error.kind(), Kind::Invalid, "{error}");
        assert!(!whole_text(&error).contains("hush"), "{}", whole_text(&error));
    }
}

#[tokio::test]
async fn adls_writes_only_if_absent_with_the_key_of_the_account() {
    let storage = AdlsStorage { account_key: Some(Secret::new(HUSH)), ..AdlsStorage::default() };
    let exists = "<Error><Code>BlobAlreadyExists</Code></Error>";
    let created = "HTTP/1.1 201 Created\r\nETag: \"e\"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_owned();
    let (place, server) = adls(storage, vec![created, with_body("409 Conflict", exists), CONTENT.to_owned()]).await;
    let files = files();
    for (location, written) in [
        ("abfss://c@account.dfs.core.windows.net/w/a b", true),
        ("wasbs://c@account.blob.core.windows.net/w/a b", false),
    ] {
        assert_eq!(files.write_new(&place, location, Bytes::from_static(b"xyz")).await.is_ok(), written, "{location}");
    }
    for request in &server.await.unwrap()[..2] {
        assert!(request.starts_with("PUT /account/c/w/a%20b HTTP/1.1\r\n"), "{request}");
        for header in ["if-none-match: *", "x-ms-blob-type: BlockBlob", "authorization: SharedKey account:"] {
            assert!(request.contains(header), "{header} in {request}");
        }
    }
}

#[tokio::test]
async fn a_shared_access_signature_is_in_the_request_and_in_no_error() {
    let sas = format!("?sv=2020-12-06&sp=rwdl&sig={HUSH}");
    let storage = AdlsStorage { sas_token: Some(Secret::new(sas)), ..AdlsStorage::default() };
    let denied = with_body("403 Forbidden", "<Error><Code>AuthenticationFailed</Code></Error>");
    let (place, server) = adls(storage, vec![denied]).await;
    let error = files().probe(&place, Uuid::from_u128(1)).await.unwrap_err();
    assert!(error.message().contains("sas-token") && error.message().contains("AuthenticationFailed"), "{error}");
    assert!(!whole_text(&error).contains(HUSH), "{}", whole_text(&error));
    let request = server.await.unwrap().remove(0);
    assert!(request.starts_with("PUT /account/c/w/frazil-probe-"), "{request}");
    assert!(request.lines().next().unwrap().contains(&format!("sig={HUSH}")), "{request}");
}

#[tokio::test]
async fn a_write_that_nobody_knows_the_end_of_is_deleted() {
    let deleted = with_body("200 OK", "<DeleteResult/>");
    let (place, server) = s3(vec![UNAVAILABLE, UNAVAILABLE, UNAVAILABLE, UNAVAILABLE, &deleted]).await;
    let error = files().probe(&place, Uuid::from_u128(1)).await.unwrap_err();
    assert!(error.message().contains("writing 's3://bucket/w/frazil-probe-"), "{error}");
    let requests = server.await.unwrap();
    assert!(requests[3].starts_with("PUT ") && requests[4].starts_with("POST /bucket?delete"), "{requests:?}");
}

#[tokio::test]
async fn a_store_that_overwrites_is_found_out() {
    let listed = |id: Uuid| {
        format!(
            "<ListBucketResult><Contents><Key>w/frazil-probe-{id}/object</Key><Size>36</Size><ETag>e</ETag>\
             <LastModified>2024-01-01T00:00:00Z</LastModified></Contents></ListBucketResult>"
        )
    };
    let id = Uuid::from_u128(7);
    let read = format!(
        "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\nConnection: close\r\n\
         Content-Length: 36\r\n\r\n{id}"
    );
    let (listed, deleted) = (with_body("200 OK", &listed(id)), with_body("204 No Content", ""));
    let (place, server) = s3(vec![OK, &read, &listed, OK, &deleted]).await;
    let error = files().probe(&place, id).await.unwrap_err();
    assert!(error.message().contains("conditional writes"), "{error}");
    assert_eq!(server.await.unwrap().len(), 5, "the object is deleted all the same");
}
