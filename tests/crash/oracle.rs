//! A log of begun and acknowledged work, which the server cannot touch, flushed line by
//! line, and what it says must be there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::content::Tag;

/// The log, open for writing.
pub(crate) struct Oracle {
    path: PathBuf,
    file: Mutex<File>,
    next_tag: AtomicU64,
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    Uploaded(Tag, String),
    BatchBegun(Tag, usize),
    BatchDone(Tag, Vec<String>),
    ReplaceBegun(String, Tag),
    Replaced(String, Tag),
    DeleteBegun(String),
    Deleted(String),
    RestoreBegun(String),
    Restored(String),
    RestoreRefused(String),
    Promoted(String),
    /// The address of a resumable upload, and an offset that was told of it.
    Told(String, u64),
    CancelBegun(String),
    Cancelled(String),
    /// An upload whose offset is not compared any more, because its file goes its own way.
    Finished(String),
    EraseBegun(String),
    Erased(String),
}

/// The state of one file according to the log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    /// The possible contents: the last acknowledged one, and those that may have replaced it.
    pub(crate) tags: Vec<Tag>,
    pub(crate) presence: Presence,
    /// True once a promotion was acknowledged.
    pub(crate) is_promoted: bool,
    /// The number of deletes that were begun, that of an erasure included.
    pub(crate) deletes: usize,
    /// True once an erasure of its organization was begun while the file was there.
    pub(crate) is_in_erasure: bool,
}

/// The presence of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Presence {
    #[default]
    There,
    /// A delete or a restore was begun and not acknowledged.
    Either,
    Gone,
}

/// The state of the whole store according to the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    pub(crate) files: BTreeMap<String, Expected>,
    /// Batches by the tag of their first item, with their number of items.
    pub(crate) batches: BTreeMap<Tag, usize>,
    pub(crate) acknowledged_batches: BTreeSet<Tag>,
    /// The last offsets that were told of resumable uploads which nobody cancels.
    pub(crate) told: BTreeMap<String, u64>,
    pub(crate) cancelled: BTreeSet<String>,
}

impl Oracle {
    pub(crate) fn create(path: PathBuf) -> Self {
        let file = File::create_new(&path).expect("a new log");
        Self { path, file: Mutex::new(file), next_tag: AtomicU64::new(1) }
    }

    /// Goes on with the log at `path`, or begins one. Tags begin far above those of the log.
    pub(crate) fn open(path: PathBuf) -> Self {
        let lines = std::fs::read_to_string(&path).unwrap_or_default().lines().count() as u64;
        let file = File::options().append(true).create(true).open(&path).expect("a log");
        Self { path, file: Mutex::new(file), next_tag: AtomicU64::new(1 + 100 * lines) }
    }

    /// Returns the first of `count` fresh tags.
    pub(crate) fn tags(&self, count: u64) -> Tag {
        self.next_tag.fetch_add(count, Ordering::Relaxed)
    }

    /// Writes a line and flushes it to the disk.
    pub(crate) fn log(&self, entry: &Entry) {
        let line = match entry {
            Entry::Uploaded(tag, id) => format!("uploaded {tag} {id}"),
            Entry::BatchBegun(tag, items) => format!("batch-begun {tag} {items}"),
            Entry::BatchDone(tag, ids) => format!("batch-done {tag} {}", ids.join(" ")),
            Entry::ReplaceBegun(id, tag) => format!("replace-begun {id} {tag}"),
            Entry::Replaced(id, tag) => format!("replaced {id} {tag}"),
            Entry::DeleteBegun(id) => format!("delete-begun {id}"),
            Entry::Deleted(id) => format!("deleted {id}"),
            Entry::RestoreBegun(id) => format!("restore-begun {id}"),
            Entry::Restored(id) => format!("restored {id}"),
            Entry::RestoreRefused(id) => format!("restore-refused {id}"),
            Entry::Promoted(id) => format!("promoted {id}"),
            Entry::Told(upload, offset) => format!("told {upload} {offset}"),
            Entry::CancelBegun(upload) => format!("cancel-begun {upload}"),
            Entry::Cancelled(upload) => format!("cancelled {upload}"),
            Entry::Finished(upload) => format!("finished {upload}"),
            Entry::EraseBegun(id) => format!("erase-begun {id}"),
            Entry::Erased(id) => format!("erased {id}"),
        };

        let mut file = self.file.lock().expect("no writer of the log panics");
        writeln!(file, "{line}").expect("the log can be written");
        file.sync_data().expect("the log can be flushed");
    }

    /// Replays the log from its first line.
    pub(crate) fn replay(&self) -> State {
        let text = std::fs::read_to_string(&self.path).expect("the log can be read");
        let mut state = State::default();
        for line in text.lines() {
            state.apply(parse(line).unwrap_or_else(|| panic!("no entry: {line}")));
        }
        state
    }
}

fn parse(line: &str) -> Option<Entry> {
    let words: Vec<&str> = line.split(' ').collect();
    Some(match words[..] {
        ["uploaded", tag, id] => Entry::Uploaded(tag.parse().ok()?, id.into()),
        ["batch-begun", tag, items] => Entry::BatchBegun(tag.parse().ok()?, items.parse().ok()?),
        ["batch-done", tag, ref ids @ ..] => {
            Entry::BatchDone(tag.parse().ok()?, ids.iter().map(|id| (*id).to_owned()).collect())
        }
        ["replace-begun", id, tag] => Entry::ReplaceBegun(id.into(), tag.parse().ok()?),
        ["replaced", id, tag] => Entry::Replaced(id.into(), tag.parse().ok()?),
        ["delete-begun", id] => Entry::DeleteBegun(id.into()),
        ["deleted", id] => Entry::Deleted(id.into()),
        ["restore-begun", id] => Entry::RestoreBegun(id.into()),
        ["restored", id] => Entry::Restored(id.into()),
        ["restore-refused", id] => Entry::RestoreRefused(id.into()),
        ["promoted", id] => Entry::Promoted(id.into()),
        ["told", upload, offset] => Entry::Told(upload.into(), offset.parse().ok()?),
        ["cancel-begun", upload] => Entry::CancelBegun(upload.into()),
        ["cancelled", upload] => Entry::Cancelled(upload.into()),
        ["finished", upload] => Entry::Finished(upload.into()),
        ["erase-begun", id] => Entry::EraseBegun(id.into()),
        ["erased", id] => Entry::Erased(id.into()),
        _ => return None,
    })
}

impl State {
    fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::Uploaded(tag, id) => self.insert(id, tag),
            Entry::BatchBegun(tag, items) => {
                self.batches.insert(tag, items);
            }
            Entry::BatchDone(tag, ids) => {
                self.acknowledged_batches.insert(tag);
                (tag..).zip(ids).for_each(|(tag, id)| self.insert(id, tag));
            }
            Entry::ReplaceBegun(id, tag) => self.file(&id).tags.push(tag),
            Entry::Replaced(id, tag) => self.file(&id).tags = vec![tag],
            Entry::DeleteBegun(id) => {
                self.file(&id).presence = Presence::Either;
                self.file(&id).deletes += 1;
            }
            Entry::EraseBegun(id) => {
                self.file(&id).presence = Presence::Either;
                self.file(&id).deletes += 1;
                self.file(&id).is_in_erasure = true;
            }
            Entry::RestoreBegun(id) => self.file(&id).presence = Presence::Either,
            Entry::Deleted(id) | Entry::Erased(id) | Entry::RestoreRefused(id) => {
                self.file(&id).presence = Presence::Gone;
            }
            Entry::Restored(id) => self.file(&id).presence = Presence::There,
            Entry::Promoted(id) => self.file(&id).is_promoted = true,
            Entry::Told(upload, offset) => _ = self.told.insert(upload, offset),
            Entry::CancelBegun(upload) | Entry::Finished(upload) => _ = self.told.remove(&upload),
            Entry::Cancelled(upload) => _ = self.cancelled.insert(upload),
        }
    }

    fn insert(&mut self, id: String, tag: Tag) {
        let file = Expected { tags: vec![tag], ..Expected::default() };
        self.files.insert(id, file);
    }

    fn file(&mut self, id: &str) -> &mut Expected {
        self.files.get_mut(id).expect("only acknowledged files are changed")
    }
}
