//! Explanations: where a file is and why, what comes next and when, and what was tried.
//!
//! [`explain`] is a pure function of everything that decides about a file: the record with the work
//! that waits for it ([`FileWork`]), and the state of the store ([`Circumstances`]). A file that is
//! purged is explained from its receipt ([`explain_purged`]). Neither function reads a clock, a
//! database or a provider.
//!
//! The rules are those of the workers (`worker/`), said in words. If you change when a worker does
//! its work, change the step here. The simulation compares both.
//!
//! The events of the file ([`History`]) stand beside the explanation. They tell of the past, and
//! decide about nothing.

mod codes;
mod facts;
mod history;
mod next;
mod place;
mod purged;
mod tried;
mod why;
mod work;
#[cfg(test)]
mod tests;

pub use codes::{FactCode, StepCode};
pub use history::History;
pub use purged::explain_purged;
pub use work::{Circumstances, FileWork, KnownProvider, PurgeWork, ReplacedBlobs, UnfinishedWrite};

use super::receipt::PurgedFile;
use crate::domain::file::record::FileRecord;
use crate::domain::id::{FileId, OrganizationId};
use crate::domain::provider::ProviderCode;
use crate::domain::time::clock::Timestamp;

/// The reader of an explanation, who decides about the details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// A caller who can read the file. The explanation leaves out the error texts of providers, and
    /// the code of the backend of `LOCAL`.
    Organization,
    /// The operator of the store, who sees everything.
    Operator,
}

/// The explanation of one file; from [`Files::explain`](crate::Files::explain).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// Time of the explanation, by the store's clock.
    pub explained_at: Timestamp,
    /// The file.
    pub file: ExplainedFile,
    /// The places that store bytes of the file, first the place of the current content. For a
    /// purged file, the places from which the bytes were removed.
    pub place: Vec<Fact>,
    /// The reasons for the place and the state.
    pub why: Vec<Fact>,
    /// The next steps: first the step of the file itself, then the removal of replaced content.
    /// Never empty.
    pub next: Vec<Step>,
    /// Failed attempts.
    pub tried: Vec<Fact>,
    /// The file's history, from the log of events. Events of the last second can be missing.
    pub history: History,
}

impl Explanation {
    /// Adds the history.
    #[must_use]
    pub fn with_history(self, history: History) -> Self {
        Self { history, ..self }
    }
}

/// The subject of an explanation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExplainedFile {
    /// A stored file, deleted or not.
    Stored(Box<FileRecord>),
    /// A purged file, of which only the purge receipt is left.
    Purged(Box<PurgedFile>),
}

impl ExplainedFile {
    /// Returns the file id.
    pub fn file_id(&self) -> FileId {
        match self {
            Self::Stored(record) => record.file_id,
            Self::Purged(file) => file.file_id,
        }
    }

    /// Returns the organization that owns or owned the file.
    pub fn organization_id(&self) -> &OrganizationId {
        match self {
            Self::Stored(record) => &record.organization_id,
            Self::Purged(file) => &file.organization_id,
        }
    }
}

/// One fact about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fact {
    /// Stable code, for programs.
    pub code: FactCode,
    /// Sentence for people, without a full stop and without times.
    pub sentence: String,
    /// Provider that the fact is about.
    pub provider: Option<ProviderCode>,
    /// Start of the fact.
    pub since: Option<Timestamp>,
    /// End of the fact, if known. A lease or a hold can be extended.
    pub until: Option<Timestamp>,
    /// Number of blobs or attempts.
    pub count: Option<u64>,
    /// Error text, for people.
    pub error: Option<String>,
}

/// One next step of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Step {
    /// Stable code, for programs.
    pub code: StepCode,
    /// Sentence for people, without a full stop and without times.
    pub sentence: String,
    /// Provider at which the step happens.
    pub provider: Option<ProviderCode>,
    /// Earliest time at which the background work takes the step. The time of the explanation if
    /// the step is due. `None` if no time starts the step. A requested run, for example `filestore
    /// purge run --now`, can be earlier.
    pub not_before: Option<Timestamp>,
    /// Number of the attempt, starting at 1.
    pub attempt: Option<u32>,
    /// Number of attempts after which filestore gives up.
    pub max_attempts: Option<u32>,
    /// Obstacles. After `not_before`, the step waits until all of them are gone.
    pub waits_for: Vec<Fact>,
    /// Command that prevents the step, for example `restore`.
    pub undo: Option<&'static str>,
    /// Effects of the step.
    pub then: Vec<Fact>,
}

/// Explains a stored file, without its history.
pub fn explain(work: &FileWork, circumstances: &Circumstances<'_>) -> Explanation {
    let subject = Subject { work, seen: circumstances };
    Explanation {
        explained_at: circumstances.now,
        file: ExplainedFile::Stored(Box::new(work.record.clone())),
        place: subject.place(),
        why: subject.why(),
        next: subject.next(),
        tried: subject.tried(),
        history: History::default(),
    }
}

/// A stored file and the state of the store.
struct Subject<'s> {
    work: &'s FileWork,
    seen: &'s Circumstances<'s>,
}

/// The provider of the organization's binding, compared with the provider that stores the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bound<'b> {
    /// The organization has no active binding.
    Nowhere,
    /// The binding names `LOCAL`.
    Local,
    /// The binding names the provider that stores the file.
    Here,
    /// The binding names another provider.
    Elsewhere(&'b ProviderCode),
}

impl<'s> Subject<'s> {
    fn record(&self) -> &'s FileRecord {
        &self.work.record
    }

    /// Returns the provider that stores the file.
    fn holder(&self) -> &'s ProviderCode {
        &self.record().blob.provider
    }

    fn bound(&self) -> Bound<'s> {
        match self.work.binding.as_ref().map(|binding| &binding.provider) {
            None => Bound::Nowhere,
            Some(provider) if provider.is_local() => Bound::Local,
            Some(provider) if provider == self.holder() => Bound::Here,
            Some(provider) => Bound::Elsewhere(provider),
        }
    }

    /// Returns the time, or the time of the explanation if that is later: the step is due.
    fn not_past(&self, at: Timestamp) -> Timestamp {
        at.max(self.seen.now)
    }
}
