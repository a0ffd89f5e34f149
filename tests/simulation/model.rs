//! The oracle: what each file may be, by what was acknowledged.

use std::collections::BTreeMap;

use filestore_core::{FileId, OrganizationId, OrganizationNumber, Timestamp};

use super::content::Content;

/// A moment in the order of the events that clients see. Two moments are never equal.
pub(crate) type Moment = u64;

/// The origin of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    pub(crate) organization: OrganizationNumber,
    /// The moment at which its upload began, or at which the URL of the upload was signed.
    pub(crate) begun: Moment,
}

/// The effect of the erasures of its organization on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// No erasure was near the file.
    Untouched,
    /// An erasure that may have removed the file is under way, was killed or is not complete.
    Either,
    /// An erasure that began after the upload is complete. The file must never be back.
    Erased,
}

/// An erasure of an organization.
#[derive(Debug)]
struct Erasure {
    organization: OrganizationNumber,
    began: Moment,
    ended: Option<Moment>,
    is_complete: bool,
}

/// A state in which a file may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Readable, with this content.
    Live(Content),
    /// Deleted, with this content until the purge.
    Deleted(Content),
}

impl Shape {
    pub(crate) fn content(self) -> Content {
        match self {
            Self::Live(content) | Self::Deleted(content) => content,
        }
    }
}

/// A file of which an upload was acknowledged.
#[derive(Debug, Clone)]
pub(crate) struct File {
    /// States that fit everything heard so far: more than one after a call without a reply.
    pub(crate) may_be: Vec<Shape>,
    /// Time from which the file may have expired, if it may be TEMP.
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) origin: Origin,
}

impl File {
    pub(crate) fn new(content: Content, origin: Origin, expires_at: Option<Timestamp>) -> Self {
        Self { may_be: vec![Shape::Live(content)], expires_at, origin }
    }

    /// Takes `shape` for possible too: a call that leads there is under way.
    pub(crate) fn may_become(&mut self, shape: Shape) {
        if !self.may_be.contains(&shape) {
            self.may_be.push(shape);
        }
    }

    /// Takes `shape` for certain.
    pub(crate) fn is(&mut self, shape: Shape) {
        self.may_be = vec![shape];
    }

    /// Tells if a reader may find nothing at `now`, erasures left aside.
    fn may_be_gone(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
            || self.may_be.iter().any(|shape| matches!(shape, Shape::Deleted(_)))
    }

    /// Finds the content among those that the file may have.
    pub(crate) fn live_with(&self, bytes: &[u8]) -> Option<Shape> {
        self.may_be
            .iter()
            .map(|shape| shape.content())
            .find(|content| content.bytes() == bytes)
            .map(Shape::Live)
            .filter(|shape| self.may_be.contains(shape))
    }
}

/// All that is known, and the sums for the report.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) files: BTreeMap<FileId, File>,
    /// The origins of all uploads that began, acknowledged or not, by the numbers of their contents.
    origins: BTreeMap<u64, Origin>,
    erasures: Vec<Erasure>,
    moment: Moment,
    pub(crate) next_content: u64,
    pub(crate) next_batch: u64,
    pub(crate) calls: u64,
    pub(crate) refused: u64,
    pub(crate) given_up: u64,
    pub(crate) reads: u64,
    pub(crate) erased: u64,
    pub(crate) resumed: u64,
}

impl Model {
    /// Tells if an erasure of the organization began.
    pub(crate) fn has_erased(&self, organization: &OrganizationId) -> bool {
        self.erasures.iter().any(|one| OrganizationId::from(one.organization) == *organization)
    }

    pub(crate) fn fresh_content(&mut self) -> Content {
        self.next_content += 1;
        Content(self.next_content)
    }

    /// Returns the next moment.
    pub(crate) fn next_moment(&mut self) -> Moment {
        self.moment += 1;
        self.moment
    }

    /// Makes the content of an upload that begins now.
    pub(crate) fn begin_upload(&mut self, organization: OrganizationNumber) -> (Content, Origin) {
        let origin = Origin { organization, begun: self.next_moment() };
        (self.begin_upload_of(origin), origin)
    }

    /// Makes the content of an upload that was begun or signed before.
    pub(crate) fn begin_upload_of(&mut self, origin: Origin) -> Content {
        let content = self.fresh_content();
        self.origins.insert(content.0, origin);
        content
    }

    /// Returns the origin of a file by its name, which ends with the number of its first content.
    pub(crate) fn origin_of(&self, name: &str) -> Origin {
        let number = name.rsplit('-').next().and_then(|text| text.parse().ok());
        self.origins[&number.expect("each name ends with a number")]
    }

    /// Counts the files that were ever begun for an organization.
    pub(crate) fn begun_for(&self, organization: OrganizationNumber) -> u64 {
        let all = self.origins.values();
        all.filter(|origin| origin.organization == organization).count() as u64
    }

    /// Notes that an erasure begins. Returns its number.
    pub(crate) fn begin_erasure(&mut self, organization: OrganizationNumber) -> usize {
        let began = self.next_moment();
        self.erasures.push(Erasure { organization, began, ended: None, is_complete: false });
        self.erasures.len() - 1
    }

    /// Notes the end of an erasure. A complete one has left nothing from before its begin.
    pub(crate) fn end_erasure(&mut self, number: usize, is_complete: bool) {
        let ended = self.next_moment();
        let erasure = &mut self.erasures[number];
        (erasure.ended, erasure.is_complete) = (Some(ended), is_complete);
        self.erased += u64::from(is_complete);
    }

    /// Notes that the process was killed, and all erasures with it.
    pub(crate) fn end_erasures(&mut self) {
        let ended = self.next_moment();
        for erasure in &mut self.erasures {
            erasure.ended.get_or_insert(ended);
        }
    }

    /// Lists the organizations whose last erasure is not complete.
    pub(crate) fn half_erased(&self) -> Vec<OrganizationNumber> {
        let last: BTreeMap<_, _> =
            self.erasures.iter().map(|one| (one.organization, one.is_complete)).collect();
        last.into_iter().filter(|(_, is_complete)| !is_complete).map(|(one, _)| one).collect()
    }

    /// Returns what erasures have left of a file, for a caller whose call began at `moment`.
    pub(crate) fn fate(&self, origin: Origin, moment: Moment) -> Fate {
        let mut fate = Fate::Untouched;
        for erasure in self.erasures.iter().filter(|one| one.organization == origin.organization) {
            let is_over = erasure.ended.is_some_and(|ended| ended <= moment);
            if is_over && erasure.is_complete && origin.begun < erasure.began {
                return Fate::Erased;
            }
            if erasure.ended.is_none_or(|ended| origin.begun < ended) {
                fate = Fate::Either;
            }
        }
        fate
    }

    /// Tells if a reader may find nothing of a file at `now`, in a call that ends now.
    pub(crate) fn may_be_gone(&self, file: &File, now: Timestamp) -> bool {
        file.may_be_gone(now) || self.fate(file.origin, self.moment) != Fate::Untouched
    }
}
