//! Walks over the names below `blobs/` and `staging/`, page by page.
//!
//! # Purpose
//! A check lists names first, and queries the database later. The memory use is limited: a day's directory is
//! read as a stream, and a limited number of names of the directories above it is in memory. These names are
//! ordered, so a walk can resume after any day.
//!
//! # Crash safety
//! A walk changes no files. Directories that disappear in the meantime count as empty.

use std::collections::{BinaryHeap, VecDeque};
use std::fs::{DirEntry, ReadDir, read_dir};
use std::io;
use std::path::{Path, PathBuf};

use crate::domain::error::{Error, Result};
use crate::domain::file::path::BlobKey;
use crate::domain::id::BlobId;
use crate::storage::local::{LocalStore, pool};

/// The number of names in a page.
const PAGE: usize = 1000;

/// The maximum number of names in memory for one directory above the days.
const HELD: usize = 4096;

/// The number of directories between `blobs/` and a blob: organization, sub-system, year, month, day.
const DEPTH: usize = 5;

/// The prefix of the directory's own marker.
const MARKER: &str = ".store-id";

const WALKING: &str = "walking over the blobs";

/// A name that a walk finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WalkedName<T> {
    /// The name of a blob.
    Blob(T),
    /// Any other name, as a path below the walked directory.
    Foreign(String),
}

/// Names from one directory.
#[derive(Debug, Default)]
pub struct WalkedPage {
    /// The names.
    pub names: Vec<WalkedName<BlobKey>>,
    /// The day directory that ends with this page. A later walk can resume after it.
    pub finished: Option<String>,
}

/// A walk over all blobs under their final names.
#[derive(Debug)]
pub struct BlobWalk {
    root: PathBuf,
    levels: Vec<Level>,
    /// The current day.
    day: Option<(String, ReadDir)>,
    /// The remaining parts of the day to resume after, first level first.
    floor: VecDeque<String>,
}

/// A directory above the days.
#[derive(Debug)]
struct Level {
    /// The path below `blobs/`. Empty for `blobs/` itself.
    path: String,
    /// The next names, in order.
    names: VecDeque<(String, IsDirectory)>,
    /// The last of the names that were in memory.
    last: Option<String>,
    /// True if no names follow.
    is_over: bool,
}

type IsDirectory = bool;

impl LocalStore {
    /// Begins a walk over all blobs under their final names. With `after`, starts after this day directory.
    pub fn walk(&self, after: Option<&str>) -> BlobWalk {
        let floor = after.map(|day| day.split('/').map(str::to_owned).collect());
        BlobWalk {
            root: self.shared.dir.blobs(),
            levels: vec![Level::of(String::new())],
            day: None,
            floor: floor.unwrap_or_default(),
        }
    }

    /// Begins a walk over all staged names.
    pub fn walk_staged(&self) -> StagedWalk {
        StagedWalk { path: self.shared.dir.staging(), entries: None }
    }
}

impl BlobWalk {
    /// Returns the next names, and the rest of the walk. `None` at the end.
    pub async fn next(mut self) -> Result<Option<(WalkedPage, Self)>> {
        pool::run(WALKING, move || {
            let page = self.page().map_err(|error| Error::io(WALKING, error))?;
            Ok(page.map(|page| (page, self)))
        })
        .await
    }

    fn page(&mut self) -> io::Result<Option<WalkedPage>> {
        let mut page = WalkedPage::default();
        loop {
            if let Some((day, entries)) = &mut self.day {
                if read_names(day, entries, &mut page.names)? {
                    page.finished = self.day.take().map(|(day, _)| day);
                }
                return Ok(Some(page));
            }

            match self.next_day(&mut page.names)? {
                Some(day) => {
                    self.day = open(&self.root.join(&day))?.map(|entries| (day, entries));
                }
                None if page.names.is_empty() => return Ok(None),
                None => return Ok(Some(page)),
            }
        }
    }

    /// Moves to the next day directory. Names that are not directories are foreign.
    fn next_day(&mut self, foreign: &mut Vec<WalkedName<BlobKey>>) -> io::Result<Option<String>> {
        while let Some(level) = self.levels.last_mut() {
            let floor = self.floor.front().cloned();
            let Some((name, is_directory)) = level.next(&self.root, floor.as_deref())? else {
                self.levels.pop();
                self.floor.clear();
                continue;
            };

            let path = join(&level.path, &name);
            let is_day = self.levels.len() == DEPTH;
            let is_floor = floor.as_deref() == Some(name.as_str());
            if is_floor {
                self.floor.pop_front();
            } else {
                self.floor.clear();
            }

            if !is_directory {
                self.floor.clear();
                if !name.starts_with(MARKER) {
                    foreign.push(WalkedName::Foreign(path));
                }
            } else if !is_day {
                self.levels.push(Level::of(path));
            } else if !is_floor {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }
}

impl Level {
    fn of(path: String) -> Self {
        Self { path, names: VecDeque::new(), last: None, is_over: false }
    }

    /// Returns the next name, from `floor` on.
    fn next(
        &mut self,
        root: &Path,
        floor: Option<&str>,
    ) -> io::Result<Option<(String, IsDirectory)>> {
        if self.names.is_empty() && !self.is_over {
            self.fill(root, floor)?;
        }
        Ok(self.names.pop_front())
    }

    /// Loads the smallest names above the last ones.
    fn fill(&mut self, root: &Path, floor: Option<&str>) -> io::Result<()> {
        let mut smallest = BinaryHeap::new();
        for entry in open(&root.join(&self.path))?.into_iter().flatten() {
            let entry = entry?;
            let name = text(&entry);
            let is_before = self.last.as_ref().is_some_and(|last| name <= *last)
                || floor.is_some_and(|floor| name.as_str() < floor);
            if is_before {
                continue;
            }

            smallest.push((name, entry.file_type()?.is_dir()));
            if smallest.len() > HELD {
                smallest.pop();
            }
        }

        self.is_over = smallest.len() < HELD;
        self.names = smallest.into_sorted_vec().into();
        self.last = self.names.back().map(|(name, _)| name.clone());
        Ok(())
    }
}

/// A walk over the staged names.
#[derive(Debug)]
pub struct StagedWalk {
    path: PathBuf,
    entries: Option<ReadDir>,
}

impl StagedWalk {
    /// Returns the next names, and the rest of the walk. `None` at the end.
    pub async fn next(mut self) -> Result<Option<(Vec<WalkedName<BlobId>>, Self)>> {
        pool::run(WALKING, move || {
            let page = self.page().map_err(|error| Error::io(WALKING, error))?;
            Ok((!page.is_empty()).then_some((page, self)))
        })
        .await
    }

    fn page(&mut self) -> io::Result<Vec<WalkedName<BlobId>>> {
        if self.entries.is_none() {
            self.entries = open(&self.path)?;
        }

        let mut names = Vec::new();
        for entry in self.entries.iter_mut().flatten().take(PAGE) {
            let name = text(&entry?);
            names.push(match name.parse() {
                Ok(id) => WalkedName::Blob(id),
                Err(_) => WalkedName::Foreign(name),
            });
        }
        Ok(names)
    }
}

/// Reads names of a day until a page is full. Returns true at the end of the day.
fn read_names(
    day: &str,
    entries: &mut ReadDir,
    names: &mut Vec<WalkedName<BlobKey>>,
) -> io::Result<bool> {
    while names.len() < PAGE {
        let Some(entry) = entries.next() else { return Ok(true) };
        let entry = entry?;
        let path = join(day, &text(&entry));
        let is_file = entry.file_type()?.is_file();

        names.push(match path.parse() {
            Ok(key) if is_file => WalkedName::Blob(key),
            _ => WalkedName::Foreign(path),
        });
    }
    Ok(false)
}

/// Opens a directory. `None` if it no longer exists.
fn open(path: &Path) -> io::Result<Option<ReadDir>> {
    match read_dir(path) {
        Ok(entries) => Ok(Some(entries)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn text(entry: &DirEntry) -> String {
    entry.file_name().to_string_lossy().into_owned()
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::config::StoreConfig;
    use crate::domain::time::clock::Timestamp;
    use crate::storage::{DataDir, LocalOptions};

    fn store(home: &tempfile::TempDir) -> LocalStore {
        let options = LocalOptions::from(&StoreConfig::default());
        LocalStore::open(&DataDir::open(home.path()).unwrap(), options).unwrap()
    }

    fn put(home: &tempfile::TempDir, organization: &str, day: i64) -> BlobKey {
        let at = Timestamp::from_millis(day * 86_400_000);
        let sub_system = "docs".parse().unwrap();
        let blob = BlobId::generate(at);
        let key = BlobKey::new(&organization.parse().unwrap(), &sub_system, at, blob);
        let path = home.path().join("blobs").join(key.as_str());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
        key
    }

    async fn all(mut walk: BlobWalk) -> (Vec<String>, Vec<String>, Vec<String>) {
        let (mut blobs, mut foreign, mut days) = (Vec::new(), Vec::new(), Vec::new());
        while let Some((page, rest)) = walk.next().await.unwrap() {
            assert!(page.names.len() <= PAGE + 10);
            for name in page.names {
                match name {
                    WalkedName::Blob(key) => blobs.push(key.to_string()),
                    WalkedName::Foreign(path) => foreign.push(path),
                }
            }
            days.extend(page.finished);
            walk = rest;
        }
        (blobs, foreign, days)
    }

    #[tokio::test]
    async fn a_walk_meets_every_blob_once_and_goes_on_after_any_day() {
        let home = tempfile::tempdir().unwrap();
        let store = store(&home);
        let mut keys: Vec<_> = (0..2500).map(|_| put(&home, "9", 3).to_string()).collect();
        for (organization, day) in [("9", 400), ("10", 3), ("a-b", 1), ("9", 31)] {
            keys.push(put(&home, organization, day).to_string());
        }
        keys.sort();

        let (mut blobs, foreign, days) = all(store.walk(None)).await;
        blobs.sort();
        assert_eq!((&blobs, foreign.len()), (&keys, 0));
        assert!(days.is_sorted() && days.len() == 5, "{days:?}");

        for day in &days {
            let (blobs, _, rest) = all(store.walk(Some(day))).await;
            assert!(rest.iter().all(|one| one > day), "{day}: {rest:?}");
            let above = keys.iter().filter(|key| key.rsplit_once('/').unwrap().0 > day.as_str());
            assert_eq!(blobs.len(), above.count(), "{day}");
        }
    }

    #[tokio::test]
    async fn what_is_no_blob_is_told_apart() {
        let home = tempfile::tempdir().unwrap();
        let store = store(&home);
        let key = put(&home, "9", 3);
        let blobs = home.path().join("blobs");
        std::fs::write(blobs.join(".store-id"), "the marker").unwrap();
        std::fs::write(blobs.join("9/notes.txt"), "x").unwrap();
        std::fs::write(blobs.join(key.directory()).join("thumbs.db"), "x").unwrap();
        std::fs::create_dir_all(blobs.join(key.directory()).join("deeper/still")).unwrap();

        let (names, mut foreign, _) = all(store.walk(None)).await;
        foreign.sort();
        let day = key.directory();
        assert_eq!(names, [key.as_str()]);
        let expected = [format!("{day}/deeper"), format!("{day}/thumbs.db"), "9/notes.txt".into()];
        assert_eq!(foreign, expected);
    }
}
