//! The manifest of a snapshot, in JSON Lines. The first line describes the snapshot, and the last line closes
//! the manifest. Each line in between is one content, in the order of the digests.
//!
//! # Compatibility
//! `format` counts changes that older readers would misunderstand. Readers ignore unknown members. `run` was
//! added with snapshots at providers. It is the run that stored a content, and is part of the object's name.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use serde::{Deserialize, Serialize};
use sha2::Digest;

use super::content::Stored;
use super::copy::Copying;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::id::{Sha256, SnapshotId};
use crate::domain::provider::ProviderCode;
use crate::domain::report::backup::{SnapshotBytes, SnapshotClouds, SnapshotInfo};
use crate::domain::time::clock::Timestamp;

/// The version of the format.
const FORMAT: u32 = 1;

/// The maximum length of a line. Contents at a provider have the longest lines.
const LINE_BYTES: u64 = 4096;

/// The number of bytes in one read. All manifests of the snapshots to keep are open together.
const BUFFER_BYTES: usize = 256 << 10;

const READING: &str = "reading a manifest";
const WRITING: &str = "writing a manifest";

/// The first line.
#[derive(Serialize, Deserialize)]
struct Head {
    format: u32,
    snapshot_id: String,
    store_id: String,
    created_at: String,
    bytes: BytesName,
    clouds: CloudsName,
    database_sha256: String,
    database_bytes: u64,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum BytesName {
    Copied,
    HardLinked,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CloudsName {
    Copied,
    Noted,
}

/// A line for a content.
#[derive(Serialize, Deserialize)]
struct Content {
    sha256: String,
    size_bytes: u64,
    /// The provider with the content, if the snapshot does not contain it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// True if the content was already missing from the store.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    damaged: bool,
    /// The run that stored the content, if its object name contains the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<String>,
}

/// The last line. The digest in this line covers all bytes before the line.
#[derive(Clone, Default, Serialize, Deserialize)]
struct End {
    files: u64,
    blobs: u64,
    blob_bytes: u64,
    elsewhere: u64,
    damaged: u64,
    /// Absent in manifests of older versions.
    #[serde(default)]
    damaged_records: u64,
    manifest_sha256: String,
}

/// A content that a snapshot names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The content digest.
    pub sha256: Sha256,
    /// The content size, in bytes.
    pub size_bytes: u64,
    /// Where the content is.
    pub kind: EntryKind,
}

impl Entry {
    /// Returns the content, if the snapshot contains it.
    pub fn stored(&self) -> Option<Stored> {
        match self.kind {
            EntryKind::Held(by) => {
                let expected = Copying { size_bytes: self.size_bytes, sha256: self.sha256 };
                Some(Stored { expected, by })
            }
            EntryKind::Elsewhere(..) | EntryKind::Damaged => None,
        }
    }
}

/// Where a content is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// The snapshot contains it. The value is the run that stored it, if object names contain the run.
    Held(Option<SnapshotId>),
    /// A provider has it.
    Elsewhere(ProviderCode, BlobKey),
    /// The content was missing from the store.
    Damaged,
}

/// A manifest in progress.
#[derive(Debug)]
pub struct ManifestWriter {
    file: BufWriter<File>,
    hasher: sha2::Sha256,
    info: SnapshotInfo,
}

impl ManifestWriter {
    /// Begins the manifest of a snapshot in an empty file. Blocks, like the other methods.
    pub fn begin(file: File, info: SnapshotInfo, database_sha256: Sha256) -> Result<Self> {
        let head = Head {
            format: FORMAT,
            snapshot_id: info.id.to_string(),
            store_id: info.store.to_string(),
            created_at: info.created_at.to_string(),
            bytes: match info.bytes {
                SnapshotBytes::Copied => BytesName::Copied,
                SnapshotBytes::HardLinked => BytesName::HardLinked,
            },
            clouds: match info.clouds {
                SnapshotClouds::Copied => CloudsName::Copied,
                SnapshotClouds::Noted => CloudsName::Noted,
            },
            database_sha256: database_sha256.to_hex(),
            database_bytes: info.database_bytes,
        };

        let mut manifest = Self {
            file: BufWriter::with_capacity(1 << 20, file),
            hasher: sha2::Sha256::new(),
            info,
        };
        manifest.line(&head)?;
        Ok(manifest)
    }

    /// Returns the description of the snapshot so far.
    pub fn info(&self) -> &SnapshotInfo {
        &self.info
    }

    /// Adds a content. `files` is the number of records with this content.
    pub fn add(&mut self, entry: &Entry, files: u64) -> Result<()> {
        let mut content = Content {
            sha256: entry.sha256.to_hex(),
            size_bytes: entry.size_bytes,
            provider: None,
            key: None,
            damaged: false,
            run: None,
        };
        match &entry.kind {
            EntryKind::Held(by) => {
                content.run = by.map(|by| by.to_string());
                self.info.blobs += 1;
                self.info.blob_bytes += entry.size_bytes;
            }
            EntryKind::Elsewhere(provider, key) => {
                self.info.elsewhere += 1;
                content.provider = Some(provider.to_string());
                content.key = Some(key.to_string());
            }
            EntryKind::Damaged => {
                self.info.damaged += 1;
                content.damaged = true;
            }
        }
        self.info.files += files;
        self.line(&content)
    }

    /// Records the number of unreadable records.
    pub fn note_damaged_records(&mut self, count: u64) {
        self.info.damaged_records = count;
    }

    /// Writes the last line, and passes all buffered bytes to the system.
    pub fn finish(mut self) -> Result<(SnapshotInfo, File)> {
        let info = self.info.clone();
        let end = End {
            files: info.files,
            blobs: info.blobs,
            blob_bytes: info.blob_bytes,
            elsewhere: info.elsewhere,
            damaged: info.damaged,
            damaged_records: info.damaged_records,
            manifest_sha256: Sha256(self.hasher.clone().finalize().into()).to_hex(),
        };
        self.line(&end)?;
        let file =
            self.file.into_inner().map_err(|error| Error::io(WRITING, error.into_error()))?;
        Ok((info, file))
    }

    fn line(&mut self, line: &impl Serialize) -> Result<()> {
        let mut text = serde_json::to_vec(line).map_err(|error| Error::internal(WRITING, error))?;
        text.push(b'\n');
        self.hasher.update(&text);
        self.file.write_all(&text).map_err(|error| Error::io(WRITING, error))
    }
}

/// The bytes of a finished manifest: a file, or an object.
pub trait ManifestBytes: Read + Seek + Send {}

impl<T: Read + Seek + Send> ManifestBytes for T {}

/// A reader of a finished manifest. Blocks.
pub struct Manifest {
    lines: BufReader<Box<dyn ManifestBytes>>,
    info: SnapshotInfo,
    database_sha256: Sha256,
    end: End,
    read: u64,
    hasher: sha2::Sha256,
}

impl Manifest {
    /// Opens a manifest, and reads its first and last line. `Unusable` if the bytes are not a manifest, are
    /// cut, or have a newer version.
    pub fn open(bytes: impl ManifestBytes + 'static) -> Result<Self> {
        let mut bytes: Box<dyn ManifestBytes> = Box::new(bytes);
        let end = last_line(&mut bytes)?;
        bytes.seek(SeekFrom::Start(0)).map_err(unread)?;

        let mut lines = BufReader::with_capacity(BUFFER_BYTES, bytes);
        let mut text = Vec::new();
        read_line(&mut lines, &mut text)?;
        let head: Head = parse(&text)?;
        if head.format > FORMAT {
            let message = format!(
                "the snapshot was made by a newer version of this program: it knows format {FORMAT}, the snapshot has {}",
                head.format
            );
            return Err(Error::new(ErrorKind::Unusable, message));
        }

        let mut hasher = sha2::Sha256::new();
        hasher.update(&text);
        let database_sha256 = head.database_sha256.parse().map_err(|_| damaged())?;
        let info = info_of(&head, &end)?;
        Ok(Self { lines, info, database_sha256, end, read: 0, hasher })
    }

    /// Returns the snapshot's description.
    pub fn info(&self) -> &SnapshotInfo {
        &self.info
    }

    /// Returns the digest that the copy of the database must have.
    pub fn database_sha256(&self) -> Sha256 {
        self.database_sha256
    }

    /// Finds a content by its digest, in any order. Do not call [`next_entry`](Self::next_entry) afterwards.
    pub fn find(&mut self, sha256: Sha256) -> Result<Option<Stored>> {
        find(self.lines.get_mut(), sha256)
    }

    /// Reads the next content. `None` at the end, after the manifest's digest was verified.
    pub fn next_entry(&mut self) -> Result<Option<Entry>> {
        let mut text = Vec::new();
        read_line(&mut self.lines, &mut text)?;
        if self.read == self.end.blobs + self.end.elsewhere + self.end.damaged {
            let sum = Sha256(self.hasher.clone().finalize().into()).to_hex();
            return if sum == self.end.manifest_sha256 { Ok(None) } else { Err(damaged()) };
        }

        self.hasher.update(&text);
        self.read += 1;
        parse::<Content>(&text)?.into_entry().map(Some)
    }
}

impl Content {
    fn into_entry(self) -> Result<Entry> {
        let kind = match (self.provider, self.key, self.damaged) {
            (None, None, false) => {
                EntryKind::Held(self.run.map(|run| run.parse()).transpose().map_err(|_| damaged())?)
            }
            (None, None, true) => EntryKind::Damaged,
            (Some(provider), Some(key), false) => EntryKind::Elsewhere(
                provider.parse().map_err(|_| damaged())?,
                key.parse().map_err(|_| damaged())?,
            ),
            _ => return Err(damaged()),
        };
        let sha256 = self.sha256.parse().map_err(|_| damaged())?;
        Ok(Entry { sha256, size_bytes: self.size_bytes, kind })
    }
}

/// Finds a content that a finished manifest names and its snapshot contains. Reads only a few lines, because
/// contents are in the order of their digests. Damage elsewhere is not detected.
pub(super) fn find(bytes: &mut dyn ManifestBytes, sha256: Sha256) -> Result<Option<Stored>> {
    let mut high = bytes.seek(SeekFrom::End(0)).map_err(unread)?;
    let mut low = 0;

    // The line of the digest, if there is one, begins within low..high.
    while low < high {
        let middle = low + (high - low) / 2;
        let (start, text) = line_from(bytes, middle)?;
        if start >= high {
            high = middle;
            continue;
        }

        let after = start + text.len() as u64;
        match serde_json::from_slice::<Content>(&text) {
            Ok(content) => match content.sha256.parse::<Sha256>().map_err(|_| damaged())? {
                found if found.0 < sha256.0 => low = after,
                found if found.0 > sha256.0 => high = middle,
                _ => return Ok(content.into_entry()?.stored()),
            },
            Err(_) if parse::<Head>(&text).is_ok() => low = after,
            Err(_) => {
                parse::<End>(&text)?;
                high = middle;
            }
        }
    }
    Ok(None)
}

/// Reads the first line that begins at or after `offset`, with its start. Empty at the end.
fn line_from(bytes: &mut dyn ManifestBytes, offset: u64) -> Result<(u64, Vec<u8>)> {
    bytes.seek(SeekFrom::Start(offset.saturating_sub(1))).map_err(unread)?;
    let mut lines = BufReader::new(bytes.take(2 * LINE_BYTES));

    let mut skipped = Vec::new();
    if offset > 0 {
        lines.read_until(b'\n', &mut skipped).map_err(unread)?;
    }
    let mut text = Vec::new();
    lines.read_until(b'\n', &mut text).map_err(unread)?;
    Ok((offset.saturating_sub(1) + skipped.len() as u64, text))
}

fn info_of(head: &Head, end: &End) -> Result<SnapshotInfo> {
    Ok(SnapshotInfo {
        id: head.snapshot_id.parse().map_err(|_| damaged())?,
        store: head.store_id.parse().map_err(|_| damaged())?,
        created_at: head.created_at.parse::<Timestamp>().map_err(|_| damaged())?,
        bytes: match head.bytes {
            BytesName::Copied => SnapshotBytes::Copied,
            BytesName::HardLinked => SnapshotBytes::HardLinked,
        },
        clouds: match head.clouds {
            CloudsName::Copied => SnapshotClouds::Copied,
            CloudsName::Noted => SnapshotClouds::Noted,
        },
        files: end.files,
        blobs: end.blobs,
        blob_bytes: end.blob_bytes,
        elsewhere: end.elsewhere,
        damaged: end.damaged,
        damaged_records: end.damaged_records,
        database_bytes: head.database_bytes,
    })
}

/// Reads the last line.
fn last_line(bytes: &mut dyn ManifestBytes) -> Result<End> {
    let length = bytes.seek(SeekFrom::End(0)).map_err(unread)?;
    let mut tail = Vec::new();
    bytes
        .seek(SeekFrom::Start(length.saturating_sub(LINE_BYTES)))
        .and_then(|_| bytes.take(LINE_BYTES).read_to_end(&mut tail))
        .map_err(unread)?;

    let whole = tail.strip_suffix(b"\n").ok_or_else(damaged)?;
    parse(whole.rsplit(|byte| *byte == b'\n').next().unwrap_or_default())
}

fn read_line(lines: &mut impl BufRead, text: &mut Vec<u8>) -> Result<()> {
    let read = lines.take(LINE_BYTES).read_until(b'\n', text);
    match read.map_err(unread)? {
        0 => Err(damaged()),
        _ => Ok(()),
    }
}

fn parse<'a, T: Deserialize<'a>>(text: &'a [u8]) -> Result<T> {
    serde_json::from_slice(text).map_err(|_| damaged())
}

/// Converts a read error. An error of a provider stays unchanged.
fn unread(error: io::Error) -> Error {
    error.downcast::<Error>().unwrap_or_else(|error| Error::io(READING, error))
}

fn damaged() -> Error {
    Error::new(ErrorKind::Unusable, "the snapshot's manifest is damaged: take another snapshot")
}
