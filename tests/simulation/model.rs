//! The oracle: what each file may be, by what was acknowledged.

use std::collections::BTreeMap;

use filestore_core::{FileId, Timestamp};

use super::content::Content;

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
}

impl File {
    pub(crate) fn new(content: Content, expires_at: Option<Timestamp>) -> Self {
        Self { may_be: vec![Shape::Live(content)], expires_at }
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

    /// Tells if a reader may find nothing at `now`.
    pub(crate) fn may_be_gone(&self, now: Timestamp) -> bool {
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
    pub(crate) next_content: u64,
    pub(crate) next_batch: u64,
    pub(crate) calls: u64,
    pub(crate) refused: u64,
    pub(crate) given_up: u64,
    pub(crate) reads: u64,
}

impl Model {
    pub(crate) fn fresh_content(&mut self) -> Content {
        self.next_content += 1;
        Content(self.next_content)
    }
}
