//! The checks of the targets. An input is refused with an error or means one thing, and nothing
//! panics.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use filestore_core::domain::disposition::Disposition;
use filestore_core::domain::id::{BlobId, FileId, OrganizationId, Sha256, SubSystem};
use filestore_core::domain::path::BlobKey;
use filestore_core::{ErrorKind, FileStore, NewUpload, Scope, api};
use filestore_server::Config;
use filestore_server::http::query::Query;
use filestore_server::http::range::ByteRange;
use filestore_server::multipart::{Boundary, Event, Limits, Parser};

/// Splits off the first byte, which chooses something.
fn choice(bytes: &[u8]) -> (usize, &[u8]) {
    bytes.split_first().map_or((0, bytes), |(first, rest)| (usize::from(*first), rest))
}

/// Reads a form in one piece and in pieces: both give the same, whatever the bytes are.
pub fn multipart(bytes: &[u8]) {
    let (length, body) = choice(bytes);
    let whole = events(body, body.len().max(1));
    let pieces = events(body, length % 61 + 1);
    assert_eq!(whole, pieces, "the form depends on how it is cut");
}

/// The parts of a form with their bytes, and whether it was whole; `None` if it is malformed.
fn events(body: &[u8], length: usize) -> Option<(Vec<(String, Vec<u8>)>, bool)> {
    let boundary = Boundary::new("b").expect("a boundary");
    let mut parser = Parser::new(&boundary, Limits::for_items(2));
    let (mut parts, mut ended) = (Vec::<(String, Vec<u8>)>::new(), false);

    for chunk in body.chunks(length) {
        parser.feed(Bytes::copy_from_slice(chunk));
        while let Some(event) = parser.next_event().ok()? {
            match event {
                Event::PartStart(header) => parts.push((format!("{header:?}"), Vec::new())),
                Event::Data(data) => {
                    assert!(!data.is_empty());
                    parts.last_mut().expect("data belong to a part").1.extend_from_slice(&data);
                }
                Event::PartEnd => {}
                Event::End => ended = true,
            }
        }
    }
    Some((parts, ended && parser.finish().is_ok()))
}

/// Reads a disposition that a client sends, and writes one for any name: what is written is a header of
/// one line, in which the name ends where it ended.
pub fn disposition(bytes: &[u8]) {
    let head = [b"--b\r\nContent-Disposition: ", bytes, b"\r\n\r\nx\r\n--b--\r\n"].concat();
    let sent = events(&head, head.len());
    if let Some((parts, true)) = sent {
        assert!(!parts.is_empty());
    }

    let name = String::from_utf8_lossy(bytes);
    let value = Disposition::Attachment.to_value(&name);
    assert!(value.bytes().all(|byte| (0x20..0x7f).contains(&byte)), "{value:?}");
    let quotes = value.bytes().filter(|byte| *byte == b'"').count();
    assert!(quotes == 0 || quotes == 2, "{value:?}");
    if !name.is_empty() {
        let (_, encoded) = value.rsplit_once("filename*=UTF-8''").expect("the exact name");
        assert!(!encoded.contains(['"', ';', ' ', '\'', '\\']), "{encoded:?}");
    }
}

/// Reads a range and a query.
pub fn range(bytes: &[u8]) {
    let (size, text) = choice(bytes);
    let text = String::from_utf8_lossy(text);
    let size = [0, 1, 2, 500, u64::MAX - 1, u64::MAX][size % 6];
    match ByteRange::parse(&text, size) {
        ByteRange::Part { first, last } => assert!(first <= last && last < size),
        ByteRange::Whole | ByteRange::Unsatisfiable => {}
    }

    if let Ok(query) = Query::parse(&text, &["limit", "cursor"]) {
        let _ = query.get("limit");
    }
}

/// Reads ids, keys and digests: what is taken is written as it was read.
pub fn ids(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(id) = text.parse::<FileId>() {
        assert_eq!(id.to_string(), text);
    }
    if let Ok(id) = text.parse::<BlobId>() {
        assert_eq!(id.to_string(), text);
    }
    if let Ok(id) = text.parse::<OrganizationId>() {
        assert_eq!(id.as_str(), text);
        assert!(!text.contains(['/', '.', '\\', '\0']));
    }
    if let Ok(name) = text.parse::<SubSystem>() {
        assert_eq!(name.as_str(), text);
        assert!(!text.contains(['/', '\\', '\0']) && !text.contains(".."));
    }
    if let Ok(key) = text.parse::<BlobKey>() {
        assert_eq!(key.as_str(), text);
        let is_safe = |part: &str| !part.is_empty() && part != "." && part != "..";
        assert!(text.split('/').all(is_safe), "a key that climbs: {text}");
    }
    if let Ok(digest) = text.parse::<Sha256>() {
        assert_eq!(digest.to_hex(), text.to_ascii_lowercase());
    }
}

/// Reads the JSON bodies of requests.
pub fn json(bytes: &[u8]) {
    let (kind, body) = choice(bytes);
    match kind % 4 {
        0 => drop(serde_json::from_slice::<api::CreateBinding>(body)),
        1 => drop(serde_json::from_slice::<api::UpdateBinding>(body)),
        2 => drop(serde_json::from_slice::<api::SignRequest>(body)),
        _ => drop(serde_json::from_slice::<api::SignUploadRequest>(body)),
    }
}

/// Reads a configuration. An error keeps secrets to itself.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(error) = Config::from_toml(text) {
        assert!(!error.to_string().is_empty());
    }
}

/// Recovers a store whose staging directory holds anything: what was stored is there, foreign names are
/// left alone, and what no record names is gone.
pub fn recovery(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let home = tempfile::tempdir().expect("a directory");
        let store = FileStore::open(home.path()).await.expect("a new store opens");
        let new = NewUpload::new("acme".parse().expect("an id"), "fuzz".parse().expect("a name"));
        let record = store.upload(new, &b"stored"[..]).await.expect("there is room");
        store.close().await;
        drop(store);

        let staging = home.path().join("staging");
        for (number, part) in bytes.split(|byte| *byte == 0).take(16).enumerate() {
            stage(&staging, number, part);
        }
        let store = FileStore::open(home.path()).await.expect("anything may lie in staging");
        assert_eq!(store.read(record.file_id, &Scope::All).await.expect("it was stored"), "stored");
        let blobs = fs::read_dir(&staging).expect("a directory");
        let left = blobs.map_while(Result::ok).filter(|entry| {
            let name = entry.file_name();
            let is_blob = name.to_str().is_some_and(|name| name.parse::<BlobId>().is_ok());
            is_blob && entry.file_type().is_ok_and(|kind| kind.is_file())
        });
        assert_eq!(left.count(), 0, "a staged blob without a record stayed");
        let unknown = store.read(FileId::generate(store.now()), &Scope::All).await;
        assert_eq!(unknown.expect_err("nobody stored it").kind(), ErrorKind::NotFound);
        store.close().await;
    });
}

/// Puts something into staging: a file, a directory or a link, under a name made of `part`.
fn stage(staging: &Path, number: usize, part: &[u8]) {
    let (kind, rest) = choice(part);
    let text: String = String::from_utf8_lossy(rest).chars().filter(|c| *c != '/').take(60).collect();
    let name = if kind % 3 == 0 {
        // A blob's name, of any age.
        format!("{:026}", number * 7 + rest.len())
    } else {
        text
    };
    let path = staging.join(&name);
    if name.is_empty() || name == "." || name == ".." {
        return;
    }
    // A name that is taken, or too long, is not put there.
    let _ = match kind % 5 {
        0 => fs::create_dir(path),
        1 => std::os::unix::fs::symlink("/dev/null", path),
        _ => fs::write(path, rest),
    };
}
