//! Saving: stores the progress in one transaction.

use std::sync::Arc;

use tokio::time::Instant;

use super::Lane;
use crate::domain::webhook::DisabledReason;
use crate::metadata::{FailureRow, LaneSave, LaneSaved, Retried, RetriedFailure};
use crate::tasks::step::{Step, reached};

/// A failed event or a held one to store, or the outcome of another attempt.
#[derive(Debug, Default)]
pub(super) struct Unsaved {
    pub(super) failed: Vec<FailureRow>,
    pub(super) retried: Vec<RetriedFailure>,
    pub(super) disable: Option<DisabledReason>,
    /// True if an answer is not saved.
    pub(super) is_answered: bool,
}

impl Lane {
    pub(super) fn has_unsaved(&self) -> bool {
        let unsaved = &self.unsaved;
        unsaved.is_answered || !unsaved.failed.is_empty() || !unsaved.retried.is_empty()
    }

    /// Returns the number of rows that will wait or be held, if no request adds any.
    fn rows_after_save(&self) -> u64 {
        let is_over = |one: &&RetriedFailure| !matches!(one.outcome, Retried::Postponed(_));
        let over = self.unsaved.retried.iter().filter(is_over).count() as u64;
        self.rows.saturating_sub(over) + self.unsaved.failed.len() as u64
    }

    /// Saves the answers. Returns false if the lane has another owner.
    pub(super) async fn save_if_needed(&mut self) -> bool {
        let moved = self.save_place_at.is_some_and(|at| Instant::now() >= at || self.is_stopping);
        if !(self.has_unsaved() || moved) || self.rests() {
            return true;
        }
        if self.window.is_idle() && self.rows_after_save() == 0 && self.sending.is_empty() {
            self.health.note_idle();
        }
        self.window.settle();
        let save = LaneSave {
            id: self.row.id,
            owner: self.shared.owner.clone(),
            now: self.now(),
            place: self.window.place(),
            ahead: self.window.ahead(),
            health: self.health.stored,
            failed: self.unsaved.failed.clone(),
            retried: self.unsaved.retried.clone(),
            disable: self.unsaved.disable,
        };
        let metadata = Arc::clone(&self.shared.store.inner().metadata);
        match metadata.save_lane(save).await {
            Ok(Some(saved)) => {
                self.note_saved(saved);
                true
            }
            Ok(None) => {
                let webhook = self.row.id;
                tracing::info!(%webhook, "the lane of a webhook was deleted, or has another owner");
                false
            }
            Err(error) => {
                self.rest(&error, "saving the progress");
                true
            }
        }
    }

    fn note_saved(&mut self, saved: LaneSaved) {
        reached(Step::DeliverySaved);
        for file in saved.freed {
            self.window.free(file);
        }
        if let Some(reason) = self.unsaved.disable {
            let webhook = self.row.id;
            tracing::warn!(%webhook, %reason, "a webhook was disabled");
            reached(Step::EndpointDisabled);
        }
        self.unsaved = Unsaved::default();
        self.next_due = saved.next_due;
        self.rows = saved.rows;
        self.save_place_at = None;
    }
}
