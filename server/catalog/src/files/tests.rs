use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::{Path as FsPath, PathBuf};

use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;
use crate::error::Kind;

mod shapes;

const LIMIT_BYTES: u64 = 1 << 20;

struct Warehouse {
    files: Arc<Files>,
    place: Place,
    folder: TempDir,
}

fn warehouse() -> Warehouse {
    let folder = tempfile::tempdir().unwrap();
    let root = Location::parse(&format!("file:{}", folder.path().display())).unwrap();
    let place = Place { root, allowed: Vec::new(), storage: Storage::default() };
    Warehouse { files: Arc::new(Files::new(FilesOptions::default(), None)), place, folder }
}

impl Warehouse {
    fn location(&self, name: &str) -> String {
        self.place.root.join(name).as_str().to_owned()
    }

    async fn write(&self, name: &str, text: &str) -> Result<()> {
        self.files.write_new(&self.place, &self.location(name), Bytes::from(text.to_owned())).await
    }

    async fn read(&self, name: &str) -> Result<Bytes> {
        self.files.read(&self.place, &self.location(name), LIMIT_BYTES).await
    }
}

fn everything_below(folder: &FsPath) -> BTreeSet<PathBuf> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(everything_below(&path));
        }
        found.insert(path);
    }
    found
}

#[tokio::test]
async fn what_was_written_is_read_back() {
    let w = warehouse();
    w.write("ns/t/metadata/0.json", "content").await.unwrap();
    assert_eq!(w.read("ns/t/metadata/0.json").await.unwrap(), "content");
}

#[tokio::test]
async fn of_twenty_writers_of_one_name_one_wins_and_its_content_stays() {
    let w = warehouse();
    let writers = (0..20).map(|i| {
        let (files, place, location) = (w.files.clone(), w.place.clone(), w.location("t/metadata/v1.json"));
        let text = i.to_string().repeat(50_000);
        tokio::spawn(async move {
            let written = files.write_new(&place, &location, Bytes::from(text.clone())).await;
            (text, written)
        })
    });
    let mut winners = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        match writer.await.unwrap() {
            (text, Ok(())) => winners.push(text),
            (_, Err(error)) => assert!(matches!(error, FileError::AlreadyExists { .. }), "{error}"),
        }
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(w.read("t/metadata/v1.json").await.unwrap(), winners[0]);
    let names = everything_below(&w.folder.path().join("t/metadata"));
    assert_eq!(names, BTreeSet::from([w.folder.path().join("t/metadata/v1.json")]), "no temporary file is left");
}

#[tokio::test]
async fn a_name_reaches_the_file_of_the_very_same_name() {
    let w = warehouse();
    for name in ["a b/c d.json", "p%20q/r%2Fs=%25.json", "plus+and&=~.json", "ä/日本.json", "back\\slash.json"] {
        w.write(name, name).await.unwrap();
        assert_eq!(std::fs::read_to_string(w.folder.path().join(name)).unwrap(), name);
        assert_eq!(w.read(name).await.unwrap(), name);
        w.files.delete(&w.place, &w.location(name)).await.unwrap();
        assert!(!w.folder.path().join(name).exists());
    }
}

#[tokio::test]
async fn all_spellings_of_a_file_location_read_the_same_file() {
    let w = warehouse();
    w.write("x.json", "x").await.unwrap();
    let path = w.folder.path().join("x.json").display().to_string();
    for location in [format!("file:{path}"), format!("file://{path}"), format!("file://localhost{path}")] {
        assert_eq!(w.files.read(&w.place, &location, LIMIT_BYTES).await.unwrap(), "x");
    }
}

#[tokio::test]
async fn a_file_that_is_not_there_is_missing_under_the_name_it_was_asked_for() {
    let w = warehouse();
    w.write("file", "x").await.unwrap();
    let spelled = format!("file:{}/none.json", w.folder.path().display());
    let error = w.files.read(&w.place, &spelled, LIMIT_BYTES).await.unwrap_err();
    assert_eq!(error.to_string(), format!("Failed to open input stream for file: {spelled}"));
    for name in ["no/folder.json", "file/below-a-file.json"] {
        assert!(matches!(w.read(name).await, Err(FileError::Missing { .. })), "{name}");
    }
}

#[tokio::test]
async fn a_folder_is_no_file() {
    let w = warehouse();
    w.write("folder/file", "x").await.unwrap();
    assert!(matches!(w.read("folder").await, Err(FileError::Missing { .. })));
}

#[tokio::test]
async fn a_name_that_the_file_system_cannot_hold_is_invalid() {
    let w = warehouse();
    let name = "x".repeat(300);
    assert_eq!(Error::from(w.write(&name, "x").await.unwrap_err()).kind(), Kind::Invalid);
    assert_eq!(Error::from(w.read(&name).await.unwrap_err()).kind(), Kind::Invalid);
}

#[tokio::test]
async fn a_file_over_the_limit_is_not_read() {
    let w = warehouse();
    w.write("x", "12345").await.unwrap();
    assert_eq!(w.files.read(&w.place, &w.location("x"), 5).await.unwrap(), "12345");
    let error = w.files.read(&w.place, &w.location("x"), 4).await.unwrap_err();
    assert!(matches!(error, FileError::TooLarge { size_bytes: 5, limit_bytes: 4, .. }), "{error}");
}

#[tokio::test]
async fn every_method_refuses_what_lies_outside_of_the_place() {
    let w = warehouse();
    let outside = tempfile::tempdir().unwrap();
    let kept = outside.path().join("kept");
    std::fs::write(&kept, "kept").unwrap();
    let root = w.place.root.as_str();
    for location in [
        format!("file://{}", kept.display()),
        format!("{root}/../{}/kept", outside.path().file_name().unwrap().display()),
        format!("{root}-sibling/x"),
        "s3://bucket/x".to_owned(),
        "kept".to_owned(),
        root.to_owned() + "/%2e%2e/x",
    ] {
        let (files, place) = (&w.files, &w.place);
        assert!(matches!(files.read(place, &location, LIMIT_BYTES).await, Err(FileError::Invalid(_))), "{location}");
        let written = files.write_new(place, &location, Bytes::new()).await;
        assert!(matches!(written, Err(FileError::Invalid(_))), "{location}");
        assert!(matches!(files.delete(place, &location).await, Err(FileError::Invalid(_))), "{location}");
        let Ok(parsed) = Location::parse(&location) else {
            continue;
        };
        assert!(matches!(files.prepare_table(place, &parsed).await, Err(FileError::Invalid(_))), "{location}");
        assert!(matches!(files.delete_all(place, vec![parsed]).await, Err(FileError::Invalid(_))), "{location}");
    }
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), "kept");
    assert!(everything_below(w.folder.path()).is_empty());
}

#[tokio::test]
async fn no_link_leads_out_of_the_warehouse() {
    let w = warehouse();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("kept"), "kept").unwrap();
    symlink(outside.path(), w.folder.path().join("link")).unwrap();
    symlink(outside.path().join("kept"), w.folder.path().join("file")).unwrap();
    symlink(outside.path().join("new"), w.folder.path().join("nowhere")).unwrap();
    for name in ["link/kept", "link/t/new", "file", "nowhere", "nowhere/t/new"] {
        assert!(matches!(w.read(name).await, Err(FileError::LeadsOut { .. })), "read {name}");
        assert!(matches!(w.write(name, "x").await, Err(FileError::LeadsOut { .. })), "write {name}");
        let prepared = w.files.prepare_table(&w.place, &w.place.root.join(name)).await;
        assert!(matches!(prepared, Err(FileError::LeadsOut { .. })), "prepare {name}");
        assert!(!w.files.is_lost(&w.place, &w.location(name)).await, "ask for {name}");
    }
    w.write("own", "x").await.unwrap();
    let locations = ["link/kept", "own"].map(|name| w.place.root.join(name)).to_vec();
    let deleted = w.files.delete(&w.place, &w.location("link/kept")).await;
    assert!(matches!(deleted, Err(FileError::LeadsOut { .. })));
    let deleted = w.files.delete_all(&w.place, locations).await;
    assert_eq!(deleted.unwrap(), 1, "what lies outside is counted");
    assert!(!w.folder.path().join("own").exists(), "the others are deleted all the same");
    let left = everything_below(outside.path());
    assert_eq!(left, BTreeSet::from([outside.path().join("kept")]));
}

#[tokio::test]
async fn a_link_goes_when_it_is_deleted_and_what_it_leads_to_stays() {
    let w = warehouse();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("kept"), "kept").unwrap();
    for name in ["one", "two"] {
        symlink(outside.path().join("kept"), w.folder.path().join(name)).unwrap();
    }
    w.files.delete(&w.place, &w.location("one")).await.unwrap();
    w.files.delete_all(&w.place, vec![w.place.root.join("two")]).await.unwrap();
    assert!(everything_below(w.folder.path()).is_empty());
    assert!(outside.path().join("kept").exists());
}

#[tokio::test]
async fn links_inside_of_the_places_are_followed_and_the_root_may_be_one() {
    let mut w = warehouse();
    let (real, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = w.folder.path().join("root");
    symlink(real.path(), &root).unwrap();
    symlink(other.path(), real.path().join("other")).unwrap();
    symlink(real.path(), real.path().join("self")).unwrap();
    let location = |path: &FsPath| Location::parse(&format!("file:{}", path.display())).unwrap();
    w.place.root = location(&root);
    assert!(w.write("other/x", "x").await.is_err(), "not allowed yet");
    w.place.allowed = vec![location(other.path())];
    for name in ["x", "a/b/x", "self/y", "other/t/x"] {
        w.write(name, name).await.unwrap();
        assert_eq!(w.read(name).await.unwrap(), name);
    }
    w.files.prepare_table(&w.place, &w.place.root.join("t")).await.unwrap();
    assert!(real.path().join("t/data").is_dir() && other.path().join("t/x").is_file());
    w.files.delete(&w.place, &w.location("x")).await.unwrap();
    assert!(w.files.is_lost(&w.place, &w.location("x")).await);
}

#[tokio::test]
async fn a_location_below_a_file_is_no_place_for_a_table() {
    let w = warehouse();
    w.write("dir/file", "x").await.unwrap();
    std::fs::create_dir(w.folder.path().join("t")).unwrap();
    w.write("t/data", "x").await.unwrap();
    for name in ["dir/file", "dir/file/t", "t"] {
        let prepared = w.files.prepare_table(&w.place, &w.place.root.join(name)).await;
        assert_eq!(Error::from(prepared.unwrap_err()).kind(), Kind::Invalid, "{name}");
    }
    for name in ["dir/file/x.json", "dir/file/a/b/x.json"] {
        let written = w.write(name, "x").await;
        assert_eq!(Error::from(written.unwrap_err()).kind(), Kind::Invalid, "{name}");
    }
}

#[tokio::test]
async fn deleting_twice_is_no_error() {
    let w = warehouse();
    w.write("x", "x").await.unwrap();
    for _ in 0..2 {
        w.files.delete(&w.place, &w.location("x")).await.unwrap();
    }
    w.files.delete(&w.place, &w.location("never/was")).await.unwrap();
}

#[tokio::test]
async fn many_are_deleted_although_some_are_gone_and_one_cannot_be() {
    let w = warehouse();
    for name in ["a", "b", "folder/x"] {
        w.write(name, "x").await.unwrap();
    }
    let locations = |names: &[&str]| names.iter().map(|name| w.place.root.join(name)).collect();
    w.files.delete_all(&w.place, locations(&["a", "gone", "no/folder"])).await.unwrap();
    assert!(w.files.delete_all(&w.place, locations(&["folder", "b"])).await.is_err());
    let left = everything_below(w.folder.path());
    assert_eq!(left, BTreeSet::from(["folder", "folder/x"].map(|name| w.folder.path().join(name))));
}

#[tokio::test]
async fn a_store_that_cannot_be_asked_keeps_no_files_of_others() {
    let w = warehouse();
    w.write("own", "x").await.unwrap();
    let elsewhere = Location::parse("s3://bucket/x").unwrap();
    let deleted = w.files.delete_all(&w.place, vec![elsewhere, w.place.root.join("own")]).await;
    assert!(matches!(deleted, Err(FileError::Invalid(_))), "{deleted:?}");
    assert!(everything_below(w.folder.path()).is_empty());
}

#[tokio::test]
async fn a_prepared_table_has_its_two_folders() {
    let w = warehouse();
    let location = w.place.root.join("ns/t a%20b");
    for _ in 0..2 {
        w.files.prepare_table(&w.place, &location).await.unwrap();
    }
    let folder = w.folder.path().join("ns/t a%20b");
    assert!(folder.join("data").is_dir() && folder.join("metadata").is_dir());
}

#[tokio::test]
async fn a_probe_leaves_nothing_behind() {
    let w = warehouse();
    w.files.probe(&w.place, Uuid::from_u128(1)).await.unwrap();
    assert!(everything_below(w.folder.path()).is_empty());
}

#[tokio::test]
async fn a_probe_makes_the_root_and_tells_when_it_cannot() {
    let mut w = warehouse();
    w.place.root = w.place.root.join("not/yet");
    w.files.probe(&w.place, Uuid::from_u128(1)).await.unwrap();
    assert!(w.folder.path().join("not/yet").is_dir());
    std::fs::write(w.folder.path().join("file"), "x").unwrap();
    w.place.root = Location::parse(&format!("file:{}/file", w.folder.path().display())).unwrap();
    assert!(w.files.probe(&w.place, Uuid::from_u128(1)).await.is_err());
}

#[tokio::test]
async fn operations_beyond_the_bound_wait_for_their_turn() {
    let w = warehouse();
    let files = Files::new(FilesOptions { max_concurrent_operations: 1, ..FilesOptions::default() }, None);
    let names: Vec<String> = (0..10).map(|i| w.location(&format!("{i}"))).collect();
    let writes = names.iter().map(|name| files.write_new(&w.place, name, Bytes::from_static(b"x")));
    futures::future::try_join_all(writes).await.unwrap();
    assert_eq!(everything_below(w.folder.path()).len(), 10);
}

/// Answers one request after the other with the given answers, and returns what was asked.
async fn canned(answers: Vec<String>) -> (String, tokio::task::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !is_whole(&request) {
                let mut chunk = [0; 4096];
                let n = stream.read(&mut chunk).await.unwrap();
                assert!(n > 0, "the request ended early");
                request.extend_from_slice(&chunk[..n]);
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
            requests.push(String::from_utf8(request).unwrap());
        }
        requests
    });
    (endpoint, server)
}

async fn s3(answers: Vec<&str>) -> (Place, tokio::task::JoinHandle<Vec<String>>) {
    let (endpoint, server) = canned(answers.into_iter().map(str::to_owned).collect()).await;
    let storage = Storage::S3(S3Storage {
        endpoint: Some(endpoint),
        path_style: true,
        access_key_id: Some("id".to_owned()),
        secret_access_key: Some(Secret::new("hush")),
        ..S3Storage::default()
    });
    (place("s3://bucket/w", storage), server)
}

fn place(root: &str, storage: Storage) -> Place {
    Place { root: Location::parse(root).unwrap(), allowed: Vec::new(), storage }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    body.len() >= length.unwrap_or(0)
}

const OK: &str = "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const CONTENT: &str = "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nLast-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n\
                       Connection: close\r\nContent-Length: 3\r\n\r\nabc";
const UNAVAILABLE: &str = "HTTP/1.1 503 Slow Down\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const NOT_MET: &str = "HTTP/1.1 412 Precondition Failed\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const DENIED: &str = "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
const MISSING: &str = "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

fn files() -> Files {
    Files::new(FilesOptions::default(), None)
}

#[tokio::test]
async fn an_s3_key_is_the_text_of_the_location_and_is_written_only_if_absent() {
    let (place, server) = s3(vec![OK]).await;
    let location = "s3a://bucket/w/a b/c+d/%20/ä.json";
    files().write_new(&place, location, Bytes::from_static(b"abc")).await.unwrap();
    let request = server.await.unwrap().remove(0);
    assert!(request.starts_with("PUT /bucket/w/a%20b/c%2Bd/%2520/%C3%A4.json HTTP/1.1\r\n"), "{request}");
    assert!(request.to_ascii_lowercase().contains("if-none-match: *"), "{request}");
    assert!(request.ends_with("\r\n\r\nabc"), "{request}");
}

#[tokio::test]
async fn a_second_try_that_meets_the_first_ones_object_has_written_it() {
    let (place, server) = s3(vec![UNAVAILABLE, NOT_MET, CONTENT]).await;
    files().write_new(&place, "s3://bucket/w/x", Bytes::from_static(b"abc")).await.unwrap();
    assert_eq!(server.await.unwrap().len(), 3);
}

#[tokio::test]
async fn an_object_of_somebody_else_is_not_taken_for_ours() {
    let (place, server) = s3(vec![NOT_MET, CONTENT]).await;
    let written = files().write_new(&place, "s3://bucket/w/x", Bytes::from_static(b"xyz")).await;
    assert!(matches!(written, Err(FileError::AlreadyExists { .. })), "{written:?}");
    server.await.unwrap();
}

#[tokio::test]
async fn an_object_that_exists_and_is_not_there_is_tried_again_later() {
    let (place, server) = s3(vec![NOT_MET, MISSING]).await;
    let written = files().write_new(&place, "s3://bucket/w/x", Bytes::from_static(b"xyz")).await;
    assert!(matches!(written, Err(FileError::Unavailable { .. })), "{written:?}");
    server.await.unwrap();
}

#[tokio::test]
async fn answers_of_s3_are_sorted_by_their_meaning() {
    let (place, server) = s3(vec![CONTENT, MISSING, DENIED]).await;
    let files = files();
    let read = || files.read(&place, "s3://bucket/w/x", LIMIT_BYTES);
    assert_eq!(read().await.unwrap(), "abc");
    assert!(matches!(read().await, Err(FileError::Missing { .. })));
    assert!(matches!(read().await, Err(FileError::Denied { .. })));
    server.await.unwrap();
}
