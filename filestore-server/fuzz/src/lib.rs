//! The checks of the fuzz targets. The code must refuse an input with an error, or read it in exactly one
//! way. No input may cause a panic.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use filestore_core::internals::domain::file::disposition::Disposition;
use filestore_core::internals::domain::file::media::fetch;
use filestore_core::internals::domain::file::path::BlobKey;
use filestore_core::internals::domain::id::{BlobId, FileId, OrganizationId, Sha256, SubSystem};
use filestore_core::{ErrorKind, FileStore, MetadataPatch, NewUpload, Scope, api};
use filestore_server::Config;
use filestore_server::http::query::Query;
use filestore_server::http::range::ByteRange;
use filestore_server::multipart::{Boundary, Event, Limits, Parser};

/// Splits off the first byte, which selects a case.
fn choice(bytes: &[u8]) -> (usize, &[u8]) {
    bytes.split_first().map_or((0, bytes), |(first, rest)| (usize::from(*first), rest))
}

/// Reads a form in one piece and in several pieces. Both results must be equal.
pub fn multipart(bytes: &[u8]) {
    let (length, body) = choice(bytes);
    let whole = events(body, body.len().max(1));
    let pieces = events(body, length % 61 + 1);
    assert_eq!(whole, pieces, "the form depends on how it is cut");
}

/// The parts of a form with their bytes, and whether the form is complete. `None` for a malformed form.
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

/// Reads a disposition from a client, and writes a disposition for any name. The written header must have one
/// line, and the name must end at the right place.
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
    // A longer one is over the limit of a header.
    if !name.is_empty() && value.len() < 8000 {
        let form = value.replacen("attachment", "form-data; name=f", 1);
        let head =
            [b"--b\r\nContent-Disposition: ", form.as_bytes(), b"\r\n\r\nx\r\n--b--\r\n"].concat();
        let (parts, _) = events(&head, 1).expect("a disposition of this server is one for it");
        let read = format!("file_name: {:?}", Some(&*name));
        assert!(parts[0].0.contains(&read), "{value:?} is read as {parts:?}");
    }
}

/// Reads a media type like browsers do. Browsers must read an accepted type, and the sent `Content-Type`, as
/// the type that the service used for its decision.
pub fn media_type(bytes: &[u8]) {
    fetch::judge(&String::from_utf8_lossy(bytes));
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

/// Reads ids, keys and digests. An accepted text must be equal to its written form.
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
    match kind % 5 {
        0 => drop(serde_json::from_slice::<api::CreateBinding>(body)),
        1 => drop(serde_json::from_slice::<api::UpdateBinding>(body)),
        2 => drop(serde_json::from_slice::<api::SignRequest>(body)),
        3 => drop(serde_json::from_slice::<api::SignUploadRequest>(body)),
        _ => drop(std::str::from_utf8(body).map(str::parse::<MetadataPatch>)),
    }
}

/// Reads a configuration. An error must not contain secrets.
pub fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Err(error) = Config::from_toml(text) {
        assert!(!error.to_string().is_empty());
    }
}

/// Recovers a store with arbitrary entries in its staging directory. Afterwards, stored files exist, entries
/// with foreign names remain, and files without a record are gone.
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
        assert_eq!(
            store.scoped(&Scope::All).read(record.file_id).await.expect("it was stored"),
            "stored"
        );
        let blobs = fs::read_dir(&staging).expect("a directory");
        let left = blobs.map_while(Result::ok).filter(|entry| {
            let name = entry.file_name();
            let is_blob = name.to_str().is_some_and(|name| name.parse::<BlobId>().is_ok());
            is_blob && entry.file_type().is_ok_and(|kind| kind.is_file())
        });
        assert_eq!(left.count(), 0, "a staged blob without a record stayed");
        let unknown = store.scoped(&Scope::All).read(FileId::generate(store.now())).await;
        assert_eq!(unknown.expect_err("nobody stored it").kind(), ErrorKind::NotFound);
        store.close().await;
    });
}

/// Puts an entry into staging: a file, a directory or a link, under a name made of `part`.
fn stage(staging: &Path, number: usize, part: &[u8]) {
    let (kind, rest) = choice(part);
    let text: String =
        String::from_utf8_lossy(rest).chars().filter(|c| *c != '/').take(60).collect();
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
