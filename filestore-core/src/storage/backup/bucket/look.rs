//! Searches a provider's snapshots for contents, while other runs can work on them. See
//! [`look_for`](crate::storage::backup::look_for), which searches a directory.

use super::marker;
use super::names::{ContentName, Part, shard};
use super::object_reader::ObjectReader;
use super::{BackupBucket, Destination};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::Sha256;
use crate::domain::report::receipt::LooseContent;
use crate::domain::time::clock::Timestamp;
use crate::storage::Cloud;
use crate::storage::backup::blocking;
use crate::storage::backup::files::READING;
use crate::storage::backup::look::{Known, LookedFor, Present, latest_of};
use crate::storage::backup::manifest::{self, Manifest};

/// Returns the current destination at a provider.
pub async fn present_at_provider(cloud: &Cloud) -> Result<Present> {
    Ok(marker::read(cloud).await?.map_or(Present::Nothing, Present::Named))
}

/// Searches the snapshots at a provider for contents. An unused provider counts as empty.
///
/// Returns `Unusable` if the provider was [used](Known::Used) and its snapshots are missing. Returns
/// `ProviderUnavailable` if the provider does not answer.
pub async fn look_for_at(cloud: &Cloud, digests: &[Sha256], known: Known) -> Result<LookedFor> {
    let Some(id) = marker::read(cloud).await? else {
        return match known {
            Known::Used => {
                let message =
                    format!("the snapshots at the provider {} are not there", cloud.code());
                Err(Error::new(ErrorKind::Unusable, message))
            }
            Known::Unused => Ok(LookedFor::default()),
        };
    };

    let loose = lying_there(cloud, digests).await?;
    let mut here: Vec<_> = loose.iter().map(|loose| loose.sha256).collect();
    here.dedup();
    let mut found = LookedFor { id: Some(id), snapshots: Vec::new(), loose };
    if here.is_empty() {
        return Ok(found);
    }
    let bucket = BackupBucket { cloud: cloud.clone(), run: None };
    for id in bucket.snapshots().await? {
        let Some(object) = ObjectReader::open(cloud, Part::Manifest.object(id)).await? else {
            continue;
        };
        let looked = here.clone();
        let held = blocking(READING, move || held_of(object, &looked)).await?;
        if let Some((created_at, held)) = held {
            found.loose.retain(|loose| !held.contains(&loose.sha256));
            found.snapshots.push((id, created_at, held));
        }
    }
    Ok(found)
}

/// Lists the contents at the provider with one of the digests, in the order of the digests. The name of a
/// content tells which run stored it.
async fn lying_there(cloud: &Cloud, digests: &[Sha256]) -> Result<Vec<LooseContent>> {
    let mut digests = digests.to_vec();
    digests.sort_unstable_by_key(|sha256| sha256.0);
    digests.dedup();

    let mut here = Vec::new();
    for alike in digests.chunk_by(|one, other| one.0[0] == other.0[0]) {
        let listed = cloud.list_objects(&shard(alike[0].0[0])).await?;
        let named =
            listed.iter().filter_map(|object| Some((ContentName::parse(&object.name)?, object)));
        let wanted = named.filter(|(name, _)| alike.contains(&Sha256(name.sha256)));
        here.extend(wanted.map(|(name, object)| loose(name, object.modified_at)));
    }
    here.sort_unstable_by_key(|loose: &LooseContent| loose.sha256.0);
    Ok(here)
}

fn loose(name: ContentName, modified_at: Option<Timestamp>) -> LooseContent {
    let began_at = name.by.made_at();
    LooseContent {
        sha256: Sha256(name.sha256),
        arrived_from: modified_at.unwrap_or(began_at),
        named_until: modified_at.map_or(Timestamp::from_millis(i64::MAX), latest_of),
    }
}

type Held = (Timestamp, Vec<Sha256>);

/// Returns the time of a snapshot and the times of its searched contents. `None` if it contains none of them.
fn held_of(mut object: ObjectReader, digests: &[Sha256]) -> Result<Option<Held>> {
    let mut held = Vec::new();
    for &sha256 in digests {
        if manifest::find(&mut object, sha256)?.is_some() {
            held.push(sha256);
        }
    }
    if held.is_empty() {
        return Ok(None);
    }
    Ok(Some((Manifest::open(object)?.info().created_at, held)))
}
