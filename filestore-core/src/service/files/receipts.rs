//! Purge receipts, and the keys that sign them.
//!
//! # Purpose
//! The store creates a receipt on request. It combines the recorded purge with a new search of all places
//! that can still contain the bytes. A receipt therefore describes the present, and is signed at that time.
//!
//! # Keys
//! The store creates the private key with the first receipt, and keeps it among its settings. The same
//! database contains the rows that receipts are made from. Anyone who can write to it can make the store sign
//! a false receipt, even without the key. Snapshots include the key, so that a restored store signs with the
//! same key. A copy of a store does not include the key. The public half of a rotated key is kept forever.
//!
//! # Locking
//! `receipt_keys` allows one change of the keys at a time. There is no cache, because receipts are rare.

use std::collections::BTreeMap;

use super::Files;
use crate::domain::access::scope::Scope;
use crate::domain::config::{BackupDestination, BackupPlace};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{FileId, Sha256};
use crate::domain::report::erasure::ErasedPlace;
use crate::domain::report::receipt::{
    HoldingSnapshot, LookedAt, PurgeReceipt, PurgedFile, UNNAMED,
};
use crate::domain::report::receipt_key::{ReceiptKey, ReceiptKeyInfo, SignedReceipt};
use crate::domain::time::clock::Timestamp;
use crate::service::work::destinations;
use crate::service::work::destinations::Stood;
use crate::service::{FileStore, Inner};
use crate::storage::backup::{Known, LookedFor};
use crate::tasks;

/// The prefix of the settings for keys. The public key follows.
const KEY: &str = "receipt_key:";

/// A setting that a migration writes if the store had files before it kept receipts.
const HISTORY_FROM: &str = "receipts_from";

/// The number of receipts that one transaction removes.
const PAGE: usize = 500;

/// The keys that sign purge receipts; from [`FileStore::receipts`]. [`Files::receipt`] makes a receipt.
///
/// ```no_run
/// # async fn example(store: &filestore_core::FileStore) -> filestore_core::Result<()> {
/// for key in store.receipts().keys().await? {
///     println!("{}", key.public_key);
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "a handle does nothing until you call a method"]
#[derive(Debug, Clone, Copy)]
pub struct Receipts<'a> {
    store: &'a FileStore,
}

/// A stored key.
struct StoredReceiptKey {
    info: ReceiptKeyInfo,
    /// The private key. `None` for a key that no longer signs.
    key: Option<ReceiptKey>,
}

impl<'a> Receipts<'a> {
    pub(in crate::service) fn of(store: &'a FileStore) -> Self {
        Self { store }
    }
}

impl Inner {
    /// Removes receipts after the end of their retention.
    pub(crate) async fn forget_receipts(&self) -> Result<()> {
        let before = self.now().minus(self.config().receipt_retention);
        while self.metadata.forget_receipts(before, PAGE).await? == PAGE as u64 {}
        Ok(())
    }
}

impl Files<'_> {
    /// Creates the purge receipt of a file: a signed statement that the bytes and the record are gone at this
    /// time.
    ///
    /// Returns `NotFound` for a file outside the scope and for a file that was not purged. Also returns
    /// `NotFound` after [`receipt_retention`](crate::StoreConfig::receipt_retention), when the store removes
    /// the receipt's data.
    ///
    /// ```no_run
    /// # use filestore_core::{FileId, FileStore, Scope};
    /// # async fn example(store: &FileStore, id: FileId) -> filestore_core::Result<()> {
    /// let signed = store.scoped(&Scope::All).receipt(id).await?;
    /// if signed.receipt.is_absent_everywhere() {
    ///     println!("{}", signed.to_document());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn receipt(self, id: FileId) -> Result<SignedReceipt> {
        let receipts = self.store.receipts();
        let inner = &self.store.inner;
        let file = inner.metadata.receipt(id, self.scope).await?;
        let file = file.ok_or_else(|| Error::not_found("receipt"))?;
        // Put back from a snapshot since: its bytes are here.
        if inner.metadata.file(id, &Scope::All).await?.is_some() {
            return Err(Error::not_found("receipt"));
        }

        let keys = file.removed.iter().map(|blob| blob.key.clone()).collect();
        let quarantined = inner.stores.local().quarantined(keys).await;
        let settings = inner.metadata.settings().await?;
        let receipt = PurgeReceipt {
            store_id: inner.metadata.store_id(),
            kept_until: file.purged_at.plus(inner.config().receipt_retention),
            history_from: history_from(&settings)?.filter(|from| file.created_at < *from),
            quarantine: ErasedPlace::counted("quarantine", quarantined),
            backups: receipts.look_at_backups(&file, destinations::all_in(&settings)?).await,
            issued_at: inner.now(),
            file,
        };
        Ok(receipts.signer().await?.sign(receipt))
    }
}

impl Receipts<'_> {
    /// Lists the public keys of receipts, oldest first. The list is empty before the first receipt.
    pub async fn keys(self) -> Result<Vec<ReceiptKeyInfo>> {
        Ok(self.stored().await?.into_iter().map(|stored| stored.info).collect())
    }

    /// Creates a new key for all further receipts, and removes the previous private key. The previous public
    /// key stays in the list, so that you can verify older receipts.
    pub async fn rotate_key(self) -> Result<ReceiptKeyInfo> {
        let _changing = self.store.inner.access.receipt_keys.lock().await;
        let (info, _) = self.replace_key(self.stored().await?).await?;
        Ok(info)
    }

    /// Searches the backup destinations for a file's bytes. This includes destinations of earlier
    /// snapshots that the configuration no longer names.
    async fn look_at_backups(
        self,
        file: &PurgedFile,
        mut used: BTreeMap<BackupPlace, Stood>,
    ) -> Vec<LookedAt> {
        let inner = &self.store.inner;
        let contents = file.removed.iter().filter_map(|blob| blob.content);
        let digests: Vec<Sha256> = contents.map(|content| content.sha256).collect();

        let named = inner.config().backup_destinations.clone().into_iter();
        let mut places: Vec<_> = named
            .map(|BackupDestination { name, place }| {
                let stood = used.remove(&destinations::remembered(&place)).unwrap_or_default();
                (name, place, stood)
            })
            .collect();
        let unnamed = used.into_iter().filter(|(_, stood)| !stood.is_empty());
        places.extend(unnamed.map(|(place, stood)| (UNNAMED.to_owned(), place, stood)));

        let mut all = Vec::new();
        for (name, place, stood) in places {
            let known = if stood.is_empty() { Known::Unused } else { Known::Used };
            let found = inner.destinations.look_in(&place, digests.clone(), known).await;
            let looked = looked_at(name, inner.now(), found, file);
            all.extend(with_those_away(looked, &stood));
        }
        all
    }

    /// Returns the key that signs. Creates a key if there is none.
    async fn signer(self) -> Result<ReceiptKey> {
        let _changing = self.store.inner.access.receipt_keys.lock().await;
        let mut stored = self.stored().await?;
        match stored.iter_mut().find_map(|stored| stored.key.take()) {
            Some(key) => Ok(key),
            None => Ok(self.replace_key(stored).await?.1),
        }
    }

    /// Stores a new key, which replaces all keys that sign. The caller holds `receipt_keys`.
    async fn replace_key(
        self,
        stored: Vec<StoredReceiptKey>,
    ) -> Result<(ReceiptKeyInfo, ReceiptKey)> {
        let now = self.store.inner.now();
        let mut settings = BTreeMap::new();
        for old in stored.into_iter().filter(|old| old.info.retired_at.is_none()) {
            let info = ReceiptKeyInfo { retired_at: Some(now), ..old.info };
            settings.insert(name_of(&info), value_of(&info, None));
        }

        let key = ReceiptKey::new(tasks::random_secret());
        let info =
            ReceiptKeyInfo { public_key: key.public_key(), created_at: now, retired_at: None };
        settings.insert(name_of(&info), value_of(&info, Some(&key)));
        self.store.inner.metadata.put_settings(settings).await?;
        tracing::info!(public_key = info.public_key, "a new key signs receipts");
        Ok((info, key))
    }

    async fn stored(self) -> Result<Vec<StoredReceiptKey>> {
        let mut all = Vec::new();
        for (name, value) in self.store.inner.metadata.settings().await? {
            if let Some(public_key) = name.strip_prefix(KEY) {
                all.push(read(public_key, &value).ok_or_else(|| inconsistent(&name))?);
            }
        }
        all.sort_by_key(|stored| stored.info.created_at);
        Ok(all)
    }
}

/// Returns the time from which the store recorded dropped blobs, if the store is older than that.
fn history_from(settings: &BTreeMap<String, String>) -> Result<Option<Timestamp>> {
    let millis = settings.get(HISTORY_FROM).map(|text| text.parse());
    let millis = millis.transpose().map_err(|_| inconsistent(HISTORY_FROM))?;
    Ok(millis.map(Timestamp::from_millis))
}

/// Adds directories that were at the destination earlier and are missing now. The contents of these
/// directories are unknown.
fn with_those_away(looked: LookedAt, stood: &Stood) -> Vec<LookedAt> {
    let away = stood.ids.iter().filter(|id| looked.destination_id != Some(**id));
    let problem = looked.problem.unwrap_or(ErrorKind::Unusable.code());
    let away = away.map(|id| LookedAt {
        destination: looked.destination.clone(),
        destination_id: Some(*id),
        checked_at: looked.checked_at,
        snapshots: Vec::new(),
        loose: Vec::new(),
        problem: Some(problem),
    });
    let away: Vec<_> = away.collect();

    // A failure is that of each of them.
    let is_one_of_them = looked.problem.is_some() && !away.is_empty();
    let mut all = if is_one_of_them { Vec::new() } else { vec![looked] };
    all.extend(away);
    all
}

/// Describes a destination. Callers get a code. The log gets the reason, because the reason names paths.
/// Results that can only belong to another file are omitted, so that a receipt does not reveal that other
/// files have the same bytes.
fn looked_at(
    destination: String,
    checked_at: Timestamp,
    found: Result<LookedFor>,
    file: &PurgedFile,
) -> LookedAt {
    let mut described = LookedAt {
        destination,
        destination_id: None,
        checked_at,
        snapshots: Vec::new(),
        loose: Vec::new(),
        problem: None,
    };
    match found {
        Ok(found) => {
            described.destination_id = found.id;
            let held = found.snapshots.into_iter();
            described.snapshots = held
                .map(|(id, created_at, sha256)| HoldingSnapshot { id, created_at, sha256 })
                .collect();
            described.keep_those_of(file);
            let loose = found.loose.iter().filter(|loose| file.may_have_left(loose));
            described.loose = loose.map(|loose| loose.sha256).collect();
            described.loose.dedup();
        }
        Err(error) => {
            tracing::warn!(
                destination = described.destination,
                error = %error.chain(),
                "a receipt could not look at a destination of backups"
            );
            described.problem = Some(error.kind().code());
        }
    }
    described
}

fn name_of(info: &ReceiptKeyInfo) -> String {
    format!("{KEY}{}", info.public_key)
}

/// Encodes the instants of a key, and the private key if the key signs.
fn value_of(info: &ReceiptKeyInfo, key: Option<&ReceiptKey>) -> String {
    let created_at = info.created_at.as_millis();
    let retired_at = info.retired_at.map(|at| at.as_millis().to_string());
    let (retired_at, key) = (retired_at.unwrap_or_default(), key.map(ReceiptKey::to_hex));
    format!("{created_at},{retired_at},{}", key.unwrap_or_default())
}

fn read(public_key: &str, value: &str) -> Option<StoredReceiptKey> {
    let mut parts = value.split(',');
    let created_at = Timestamp::from_millis(parts.next()?.parse().ok()?);
    let retired_at = match parts.next()? {
        "" => None,
        at => Some(Timestamp::from_millis(at.parse().ok()?)),
    };
    let key = match parts.next()? {
        "" => None,
        text => Some(ReceiptKey::from_hex(text)?),
    };

    let is_its_own = key.as_ref().is_none_or(|key| key.public_key() == public_key);
    let public_key = public_key.to_owned();
    let info = ReceiptKeyInfo { public_key, created_at, retired_at };
    is_its_own.then_some(StoredReceiptKey { info, key })
}

fn inconsistent(name: &str) -> Error {
    let message = format!("the database holds a setting of receipts that cannot be read: {name}");
    Error::new(ErrorKind::Unusable, message)
}
