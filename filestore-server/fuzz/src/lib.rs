//! The checks of the fuzz targets. The code must refuse an input with an error, or read it in exactly one
//! way. No input may cause a panic.

use std::fs;
use std::path::Path;

use bytes::Bytes;
use filestore_core::events::{After, EventKind};
use filestore_core::internals::domain::access::signature::ShownSignature;
use filestore_core::internals::domain::file::disposition::Disposition;
use filestore_core::internals::domain::file::media::fetch;
use filestore_core::internals::domain::file::path::BlobKey;
use filestore_core::internals::domain::id::{BlobId, FileId, OrganizationId, Sha256, SubSystem};
use filestore_core::internals::domain::webhook::judge as judge_webhook;
use filestore_core::internals::service::judge_terms;
use filestore_core::internals::storage::DigestState;
use filestore_core::signing::{SignedMethod, SigningSecret};
use filestore_core::uploads::{Append, NewResumable, UploadAddress};
use filestore_core::{
    Error, ErrorKind, FileStore, MetadataPatch, NewUpload, Result, Scope, Timestamp, api,
};
use filestore_server::http::query::Query;
use filestore_server::http::range::ByteRange;
use filestore_server::multipart::{Boundary, Event, Limits, Parser};
use filestore_server::{Config, judge};
use futures_util::stream;

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

/// Reads ids, keys, digests, places in the log of events and lists of types. An accepted text must be equal to its
/// written form.
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
    if let Ok(place) = text.parse::<After>() {
        assert_eq!(place.to_string(), text);
    }
    if let Ok(kinds) = EventKind::parse_list(text) {
        assert!(!kinds.is_empty() && kinds.is_sorted());
    }
    if let Ok(digest) = text.parse::<Sha256>() {
        assert_eq!(digest.to_hex(), text.to_ascii_lowercase());
    }
}

/// Reads the URL of a webhook, an address that it could lead to, or a list of exceptions. The judge decides from tables
/// of its own.
pub fn webhook_url(bytes: &[u8]) {
    let (kind, rest) = choice(bytes);
    let text = String::from_utf8_lossy(rest);
    match kind % 3 {
        0 => judge_webhook::address(rest),
        1 => judge_webhook::allowed(&text),
        _ => judge_webhook::url(&text),
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

/// Reads the query of a signed URL. A stranger's signature, and a query of this service with another byte, are
/// refused.
pub fn signed_url(bytes: &[u8]) {
    let (at, text) = choice(bytes);
    let text = String::from_utf8_lossy(text);
    let (path, now) = ("/api/v1/files/01ARZ3NDEKTSV4RRFFQ69G5FAV", Timestamp::from_millis(1000));
    let secret = SigningSecret::new("fuzz", [7; 32]).expect("a secret");
    let is_taken = |query: &str| match ShownSignature::find(query) {
        Ok(Some(shown)) => {
            // Several keys, or none that is an id, are refused.
            let _ = shown.key();
            shown.verify(&secret, SignedMethod::Get, path, now).is_ok()
        }
        Ok(None) | Err(_) => false,
    };
    assert!(!is_taken(&text), "a stranger has signed {text}");

    let own = text.replace('#', "");
    let signed = secret.sign(SignedMethod::Get, path, &own, Timestamp::from_millis(9_000_000));
    let query = signed.strip_prefix(path).and_then(|rest| rest.strip_prefix('?'));
    let query = query.expect("path and query");
    let has_own = ["exp", "kid", "sig"].into_iter().any(|name| {
        own.split('&').any(|piece| piece == name || piece.starts_with(&format!("{name}=")))
    });
    assert!(is_taken(query) || has_own, "{query} is refused");

    let mut changed = query.as_bytes().to_vec();
    let at = at % changed.len();
    changed[at] ^= 1;
    if let Ok(changed) = String::from_utf8(changed) {
        assert!(!is_taken(&changed), "{query} is taken as {changed}");
    }
}

/// Reads the headers of a request to a resumable upload.
pub fn upload_headers(bytes: &[u8]) {
    judge::headers(&String::from_utf8_lossy(bytes));
}

/// Reads `Upload-Metadata`.
pub fn upload_metadata(bytes: &[u8]) {
    judge::metadata(&String::from_utf8_lossy(bytes));
}

/// Reads `Upload-Concat`.
pub fn upload_concat(bytes: &[u8]) {
    judge::concat(&String::from_utf8_lossy(bytes));
}

/// Reads structured fields like RFC 9651.
pub fn structured_fields(bytes: &[u8]) {
    judge::structured_field(&String::from_utf8_lossy(bytes));
}

/// Reads the stored terms of a resumable upload, and the state of its digest.
pub fn upload_terms(bytes: &[u8]) {
    judge_terms(&String::from_utf8_lossy(bytes));
    if let Some(state) = DigestState::from_bytes(bytes) {
        let again = DigestState::from_bytes(&state.to_bytes()).expect("it was just written");
        assert_eq!(again.digest(), state.digest());
    }
}

/// The length of the file in a history.
const LENGTH: usize = 600;

/// Makes requests of one resumable upload, two bytes each, with restarts in between. The offset is always that
/// of the model, and the file has the right bytes.
pub fn session_history(bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let home = tempfile::tempdir().expect("a directory");
        let mut history = History::begin(home.path()).await;
        for request in bytes.chunks_exact(2).take(24) {
            history.make(request[0], usize::from(request[1])).await;
        }
        history.end().await;
    });
}

/// An upload, and its model: the offset.
struct History<'h> {
    home: &'h Path,
    store: Option<FileStore>,
    address: UploadAddress,
    content: Bytes,
    offset: usize,
}

impl<'h> History<'h> {
    async fn begin(home: &'h Path) -> Self {
        let store = FileStore::open(home).await.expect("a new store opens");
        let new = NewUpload::new("acme".parse().expect("an id"), "fuzz".parse().expect("a name"));
        let new = NewResumable::new(new).with_length(LENGTH as u64);
        let created = store.resumable().create(new).await.expect("there is room");
        let content = (0..LENGTH).map(|at| (at % 251) as u8).collect();
        let address = created.upload.address;
        Self { home, store: Some(store), address, content, offset: 0 }
    }

    fn store(&self) -> &FileStore {
        self.store.as_ref().expect("open between two requests")
    }

    async fn make(&mut self, kind: u8, number: usize) {
        match kind % 6 {
            0..2 => self.append(self.offset, number).await,
            2 => self.append(number, number / 2).await,
            3 => {
                let shown = self.store().resumable().status(&self.address, &Scope::All).await;
                assert_eq!(shown.expect("nobody cancels").offset, self.offset as u64);
            }
            4 => self.restart(&[]).await,
            // Bytes that were written, and never told.
            _ => self.restart(&self.content.slice(..number)).await,
        }
    }

    /// Sends bytes at an offset. One that does not fit is refused with the right one.
    async fn append(&mut self, at: usize, length: usize) {
        let end = (at + length).min(LENGTH).max(at.min(LENGTH));
        let piece = self.content.slice(at.min(LENGTH)..end);
        let body = stream::iter([Ok::<_, Error>(piece)]);
        let append = Append::at(at as u64);
        let appended = self.store().resumable().append(&self.address, append, body).await;
        match appended {
            Ok(shown) => {
                assert_eq!(at, self.offset, "bytes at a wrong offset were taken");
                assert_eq!(shown.offset, end as u64);
                assert_eq!(shown.is_finished(), end == LENGTH);
                self.offset = end;
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::UploadOffsetMismatch, "{}", error.chain());
                let is_finished = self.offset == LENGTH;
                assert!(at != self.offset || is_finished, "the right offset was refused");
                assert_eq!(error.details().offset, Some(self.offset as u64));
            }
        }
    }

    /// Closes the store, adds bytes to the staged file, and opens the store again.
    async fn restart(&mut self, more: &[u8]) {
        self.store().close().await;
        self.store = None;
        let staged = fs::read_dir(self.home.join("staging")).expect("a directory");
        for entry in staged.map_while(Result::<_, _>::ok) {
            let old = fs::read(entry.path()).expect("a file");
            fs::write(entry.path(), [&old, more].concat()).expect("there is room");
        }
        let opened = reopen(self.home).await.expect("any bytes may lie past the offset");
        self.store = Some(opened);
    }

    /// Sends the rest, and compares the file.
    async fn end(&mut self) {
        if self.offset < LENGTH {
            self.append(self.offset, LENGTH).await;
        }
        let shown = self.store().resumable().status(&self.address, &Scope::All).await;
        let file = shown.expect("nobody deletes the file").file_id.expect("it is finished");
        let read = self.store().scoped(&Scope::All).read(file).await.expect("it was stored");
        assert_eq!(read, self.content);
        self.store().close().await;
    }
}

/// Opens a store whose last opener is closed, and perhaps not dropped yet.
async fn reopen(home: &Path) -> Result<FileStore> {
    for _ in 0..10_000 {
        match FileStore::open(home).await {
            Err(error) if error.kind() == ErrorKind::Locked => tokio::task::yield_now().await,
            outcome => return outcome,
        }
    }
    FileStore::open(home).await
}
