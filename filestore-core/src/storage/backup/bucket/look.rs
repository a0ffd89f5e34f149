//! Looking for contents among a provider's snapshots, beside whoever works on them: see
//! [`look_for`](crate::storage::backup::look_for), which does so in a directory.

use super::marker;
use super::names::{ContentName, Part, shard};
use super::object_reader::ObjectReader;
use super::{BackupBucket, Destination};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::Sha256;
use crate::storage::Cloud;
use crate::storage::backup::blocking;
use crate::storage::backup::directory::READING;
use crate::storage::backup::look::{Known, LookedFor, Present};
use crate::storage::backup::manifest::{self, Manifest};

/// Tells which snapshots a provider has.
pub async fn present_at_provider(cloud: &Cloud) -> Result<Present> {
    Ok(marker::read(cloud).await?.map_or(Present::Nothing, Present::Named))
}

/// Looks for contents among the snapshots at a provider. One that never had any has nothing.
///
/// `Unusable` for one that was [used](Known::Used) and shows nothing of its snapshots,
/// `ProviderUnavailable` for one that does not answer.
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

    let here = lying_there(cloud, digests).await?;
    let mut found = LookedFor { id: Some(id), snapshots: Vec::new(), loose: here.clone() };
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
            found.loose.retain(|sha256| !held.contains(sha256));
            found.snapshots.push((id, created_at, held));
        }
    }
    Ok(found)
}

/// Lists the digests under which something lies at the provider, in their order.
async fn lying_there(cloud: &Cloud, digests: &[Sha256]) -> Result<Vec<Sha256>> {
    let mut digests = digests.to_vec();
    digests.sort_unstable_by_key(|sha256| sha256.0);
    digests.dedup();

    let mut here = Vec::new();
    for alike in digests.chunk_by(|one, other| one.0[0] == other.0[0]) {
        let listed = cloud.list_objects(&shard(alike[0].0[0])).await?;
        let names = listed.iter().filter_map(|object| ContentName::parse(&object.name));
        let there: std::collections::BTreeSet<_> = names.map(|name| name.sha256).collect();
        here.extend(alike.iter().filter(|sha256| there.contains(&sha256.0)));
    }
    Ok(here)
}

type Held = (crate::domain::clock::Timestamp, Vec<Sha256>);

/// Returns the instant of a snapshot and those of the contents that it holds; `None` if it holds none.
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
