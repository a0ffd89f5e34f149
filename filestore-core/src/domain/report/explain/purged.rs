//! Explanations of purged files, from their receipts.

use std::collections::BTreeMap;

use super::facts::counted;
use super::why::deleted;
use super::{Circumstances, ExplainedFile, Explanation, Fact, FactCode, History, Step, StepCode};
use crate::domain::file::record::Deletion;
use crate::domain::provider::ProviderCode;
use crate::domain::report::receipt::PurgedFile;
use crate::domain::time::clock::Timestamp;

/// Explains a purged file, without its history.
pub fn explain_purged(file: &PurgedFile, seen: &Circumstances<'_>) -> Explanation {
    let kept_until = file.purged_at.plus(seen.config.receipt_retention);
    let forgotten = Step::new(
        StepCode::ForgetReceipt,
        "the purge receipt is removed. From then on, the id is unknown",
    );
    let mut next = vec![forgotten.not_before(kept_until.max(seen.now))];
    next.extend(awaited(file, seen));

    Explanation {
        explained_at: seen.now,
        place: removed(file, seen),
        why: vec![
            deleted(Deletion::at(file.deleted_at), Some(&file.deleted_by)),
            Fact::new(FactCode::Purged, "the purge has removed the record of the file")
                .since(file.purged_at),
        ],
        next,
        tried: Vec::new(),
        history: History::default(),
        file: ExplainedFile::Purged(Box::new(file.clone())),
    }
}

/// Describes the places from which bytes were removed.
fn removed(file: &PurgedFile, seen: &Circumstances<'_>) -> Vec<Fact> {
    let mut places: BTreeMap<ProviderCode, (u64, Timestamp)> = BTreeMap::new();
    for blob in &file.removed {
        let place = places.entry(seen.shown(&blob.holder)).or_insert((0, blob.absent_at));
        *place = (place.0 + 1, place.1.max(blob.absent_at));
    }
    let fact = |(provider, (count, at)): (ProviderCode, _)| {
        let sentence = format!("{} removed from {provider}", counted(count, "blob"));
        Fact::new(FactCode::Removed, sentence).at(provider).counting(count).since(at)
    };
    let awaited = file.awaited.iter().map(|blob| {
        let provider = seen.shown(&blob.holder);
        let sentence = format!("{provider} might still store an object of the file");
        Fact::new(FactCode::Awaited, sentence).at(provider)
    });
    places.into_iter().map(fact).chain(awaited).collect()
}

/// Describes the removals that are left. An object that might still be written has no time.
fn awaited(file: &PurgedFile, seen: &Circumstances<'_>) -> Vec<Step> {
    let step = |blob: &crate::domain::report::receipt::AwaitedBlob| {
        let provider = seen.shown(&blob.holder);
        let sentence =
            format!("the store removes the object at {provider}, or confirms that it is gone");
        let step = Step::new(StepCode::RemoveReplaced, sentence).at(provider);
        let not_before = blob.due_at.map(|due| due.max(seen.now));
        Step { not_before, waits_for: seen.obstacles_to_removal(&blob.holder), ..step }
    };
    file.awaited.iter().map(step).collect()
}
