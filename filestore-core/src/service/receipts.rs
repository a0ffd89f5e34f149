//! Receipts of purges, and the keys that sign them.
//!
//! # Purpose
//! A receipt is put together when it is asked for: what is on record of the purge, and a look at the
//! places that may still have the bytes. So it says what is so now, and is signed now.
//!
//! # Keys
//! The private key is made with the first receipt and is kept among the settings of the store, beside
//! the rows that receipts are made of: whoever can write those needs no key to have a lie signed. It
//! goes with snapshots, so that a restored store signs as before; a copy of a store has none of it.
//! A rotated key leaves its public half for ever.
//!
//! # Locking
//! `receipt_keys` lets one change of the keys run at a time. Nothing is cached: receipts are rare.

use std::collections::BTreeMap;

use super::FileStore;
use super::destinations::{self, Stood};
use crate::domain::clock::Timestamp;
use crate::domain::config::{BackupDestination, BackupPlace};
use crate::domain::erasure::ErasedPlace;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::{FileId, Sha256};
use crate::domain::receipt::{HoldingSnapshot, LookedAt, PurgeReceipt, PurgedFile, UNNAMED};
use crate::domain::receipt_key::{ReceiptKey, ReceiptKeyInfo, SignedReceipt};
use crate::domain::scope::Scope;
use crate::storage::backup::{Known, LookedFor};
use crate::tasks;

/// The beginning of the settings that hold keys; the public key follows.
const KEY: &str = "receipt_key:";

/// The setting that a migration leaves in a store that had files before it kept receipts.
const HISTORY_FROM: &str = "receipts_from";

/// Receipts that are forgotten in one transaction.
const PAGE: usize = 500;

/// Receipts of purges; from [`FileStore::receipts`].
#[derive(Debug, Clone, Copy)]
pub struct Receipts<'a> {
    store: &'a FileStore,
}

/// A key as it is stored.
struct StoredReceiptKey {
    info: ReceiptKeyInfo,
    /// The private key of the one that signs.
    key: Option<ReceiptKey>,
}

impl FileStore {
    /// Gives access to receipts of purges.
    pub fn receipts(&self) -> Receipts<'_> {
        Receipts { store: self }
    }

    /// Forgets the receipts whose time is over.
    pub(crate) async fn forget_receipts(&self) -> Result<()> {
        let before = self.inner.now().minus(self.inner.config().receipt_retention);
        while self.inner.metadata.forget_receipts(before, PAGE).await? == PAGE as u64 {}
        Ok(())
    }
}

impl Receipts<'_> {
    /// Makes the receipt of a file whose bytes are gone and whose record went with them, as things are
    /// now. `NotFound` for a file that was not purged, is foreign, or whose receipt was forgotten after
    /// [`receipt_retention`](crate::StoreConfig::receipt_retention).
    ///
    /// ```no_run
    /// # async fn example(store: &filestore_core::FileStore, id: filestore_core::FileId) -> filestore_core::Result<()> {
    /// let signed = store.receipts().get(id, &filestore_core::Scope::All).await?;
    /// if signed.receipt.is_absent_everywhere() {
    ///     println!("{}", signed.to_document());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn get(self, id: FileId, scope: &Scope) -> Result<SignedReceipt> {
        let inner = &self.store.inner;
        let file = inner.metadata.receipt(id, scope).await?;
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
            backups: self.look_at_backups(&file, destinations::all_in(&settings)?).await,
            issued_at: inner.now(),
            file,
        };
        Ok(self.signer().await?.sign(receipt))
    }

    /// Lists the public keys of receipts, the oldest first; none before the first receipt.
    pub async fn keys(self) -> Result<Vec<ReceiptKeyInfo>> {
        Ok(self.stored().await?.into_iter().map(|stored| stored.info).collect())
    }

    /// Makes a new key, which signs from now on. The private key before it is forgotten; its public key
    /// stays listed, and verifies what it signed.
    pub async fn rotate_key(self) -> Result<ReceiptKeyInfo> {
        let _changing = self.store.inner.receipt_keys.lock().await;
        let (info, _) = self.replace_key(self.stored().await?).await?;
        Ok(info)
    }

    /// Looks for the bytes that a file had in the destinations of backups, those that snapshots were
    /// taken to and the configuration does not name included.
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
            let found = self.store.look_in(&place, digests.clone(), known).await;
            let mut looked = looked_at(name, inner.now(), found);
            looked.keep_those_of(file);
            all.extend(with_those_away(looked, &stood));
        }
        all
    }

    /// Returns the key that signs, made now if there is none.
    async fn signer(self) -> Result<ReceiptKey> {
        let _changing = self.store.inner.receipt_keys.lock().await;
        let mut stored = self.stored().await?;
        match stored.iter_mut().find_map(|stored| stored.key.take()) {
            Some(key) => Ok(key),
            None => Ok(self.replace_key(stored).await?.1),
        }
    }

    /// Stores a new key in the place of those that sign. The caller holds `receipt_keys`.
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

/// Returns the instant from which the store has noted what files dropped, if it is older itself.
fn history_from(settings: &BTreeMap<String, String>) -> Result<Option<Timestamp>> {
    let millis = settings.get(HISTORY_FROM).map(|text| text.parse());
    let millis = millis.transpose().map_err(|_| inconsistent(HISTORY_FROM))?;
    Ok(millis.map(Timestamp::from_millis))
}

/// Adds the directories that stood at the destination and are not there now: nobody knows what they have.
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

/// Describes a destination. Callers are told a code, and the log why: the reason names paths.
fn looked_at(destination: String, checked_at: Timestamp, found: Result<LookedFor>) -> LookedAt {
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
            described.loose = found.loose;
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

/// Writes the instants of a key, and the private key of one that signs.
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
