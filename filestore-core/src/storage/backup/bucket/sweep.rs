//! Removes objects that no snapshot at a provider names.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::contents::Listed;
use super::lease::Lease;
use super::names::{ContentName, Part, SHARDS};
use super::{BackupBucket, Destination, Run};
use crate::domain::error::Result;
use crate::domain::time::clock::Timestamp;
use crate::storage::backup::blocking;
use crate::storage::backup::content::Stored;
use crate::storage::backup::files::READING;
use crate::storage::backup::kept::Kept;
use crate::tasks::step::{Step, reached};

/// The number of parallel removals.
const REMOVALS_AT_ONCE: usize = 16;

/// The time for which a revocation stays. This time is longer than any suspension of a process.
const REVOKED_FOR: Duration = Duration::from_hours(30 * 24);

impl BackupBucket {
    /// Removes leftovers of incomplete snapshots. The caller knows that there is no other run.
    pub(super) async fn clear_for(&self, lease: &Lease) -> Result<()> {
        let parts = self.parts().await?;
        let has = |id, wanted| parts.iter().any(|(other, part, _)| (*other, *part) == (id, wanted));
        for (id, part, modified_at) in &parts {
            let is_left = match part {
                Part::Database => !has(*id, Part::Manifest),
                Part::Manifest => has(*id, Part::Revoked),
                Part::Revoked => is_old(*modified_at, lease.taken_at),
            };
            if is_left {
                self.cloud.remove_object(&part.object(*id)).await?;
            }
        }
        Ok(())
    }

    /// Removes contents that no finished snapshot names, and redundant copies of a content.
    pub(super) async fn sweep_contents(
        &self,
        run: &Run,
        removed: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<()> {
        let mut drained = self.kept().await?;
        blocking(READING, move || drained.drain()).await?;

        let mut kept = self.kept().await?;
        for first in 0..SHARDS {
            let first = u8::try_from(first).expect("there are as many as bytes");
            let listed = self.list_shard(first).await?;
            let damaged = self.damaged(run).await?.lock().clone();
            let (read_on, doomed) = blocking(READING, move || {
                let doomed = doomed(&mut kept, &listed, &damaged)?;
                Ok((kept, doomed))
            })
            .await?;
            kept = read_on;

            if !doomed.is_empty() {
                self.confirm().await?;
                self.remove_contents(run, doomed, removed).await?;
            }
        }
        Ok(())
    }

    /// Opens the contents of the finished snapshots.
    async fn kept(&self) -> Result<Kept> {
        let mut manifests = Vec::new();
        for id in self.snapshots().await? {
            manifests.push(self.manifest(id).await?);
        }
        blocking(READING, move || Kept::open(manifests)).await
    }

    async fn remove_contents(
        &self,
        run: &Run,
        doomed: Vec<Listed>,
        removed: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<()> {
        let removals = doomed.into_iter().map(|listed| async move {
            self.cloud.remove_object(&listed.name.object()).await?;
            reached(Step::ContentSwept);
            if self.damaged(run).await?.lock().remove(&listed.name) {
                self.cloud.remove_object(&listed.name.damage_note()).await?;
            }
            removed(listed.size_bytes);
            Ok(())
        });
        stream::iter(removals).buffer_unordered(REMOVALS_AT_ONCE).try_collect().await
    }
}

/// Returns true if a note is so old that it is no longer needed.
fn is_old(modified_at: Option<Timestamp>, now: Option<Timestamp>) -> bool {
    now.zip(modified_at).is_some_and(|(now, at)| now > at.plus(REVOKED_FOR))
}

/// Selects the contents to remove from a listing in the order of digests. Blocks.
fn doomed(
    kept: &mut Kept,
    listed: &[Listed],
    damaged: &HashSet<ContentName>,
) -> Result<Vec<Listed>> {
    let mut doomed = Vec::new();
    for alike in listed.chunk_by(|one, other| one.name.sha256 == other.name.sha256) {
        let sha256 = crate::domain::id::Sha256(alike[0].name.sha256);
        let named = kept.all_of(sha256)?;
        doomed.extend(alike.iter().filter(|listed| !is_needed(listed, alike, &named, damaged)));
    }
    Ok(doomed)
}

/// Returns true if a content is needed, given the other copies of its digest. A content is needed if a
/// snapshot names it, if it replaces a missing or damaged copy that a snapshot names, or if it is damaged but
/// the only copy.
fn is_needed(
    listed: &Listed,
    alike: &[Listed],
    named: &[Stored],
    damaged: &HashSet<ContentName>,
) -> bool {
    let counts = |name: &ContentName| !damaged.contains(name);
    let is_there = |name| alike.iter().any(|other| other.name == name && counts(&name));
    let mut names = named.iter().filter_map(|stored| ContentName::of(*stored));

    if counts(&listed.name) {
        return names.any(|name| name == listed.name || !is_there(name));
    }
    !named.is_empty() && !alike.iter().any(|other| counts(&other.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::id::{Sha256, SnapshotId};
    use crate::storage::backup::copy::Copying;

    const SHA256: Sha256 = Sha256([9; 32]);

    fn by(run: u8) -> Listed {
        let run: SnapshotId = format!("01ARZ3NDEKTSV4RRFFQ69G5FA{run}").parse().unwrap();
        Listed { name: ContentName::new(SHA256, run), size_bytes: 1 }
    }

    #[test]
    fn of_equal_contents_those_stay_that_a_snapshot_names_or_that_stand_for_one() {
        let expected = Copying { size_bytes: 1, sha256: SHA256 };
        let named = |run: u8| Stored { expected, by: Some(by(run).name.by) };
        let needed = |alike: &[u8], names: &[u8], damaged: &[u8]| {
            let alike: Vec<_> = alike.iter().map(|run| by(*run)).collect();
            let names: Vec<_> = names.iter().map(|run| named(*run)).collect();
            let damaged = damaged.iter().map(|run| by(*run).name).collect();
            let is_needed = |listed: &&Listed| is_needed(listed, &alike, &names, &damaged);
            alike.iter().filter(is_needed).copied().collect::<Vec<_>>()
        };

        assert_eq!(needed(&[1, 2], &[], &[]), []);
        assert_eq!(needed(&[1, 2], &[1], &[]), [by(1)]);
        assert_eq!(needed(&[1, 2, 3], &[1, 3], &[]), [by(1), by(3)]);
        assert_eq!(needed(&[2], &[1], &[]), [by(2)], "it stands for one that is missing");
        assert_eq!(needed(&[1, 2], &[1, 2], &[1]), [by(2)], "it stands for one that is damaged");
        assert_eq!(needed(&[1], &[1], &[1]), [by(1)], "nothing is thrown away that is the last");
        assert_eq!(needed(&[1], &[], &[1]), []);
    }
}
