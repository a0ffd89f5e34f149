//! Erasures of organizations that are killed in the middle.
//!
//! Afterwards, another run must come to a complete receipt: nothing of the organization is left or comes back,
//! and other organizations have lost nothing.

use std::path::Path;

use filestore_core::admin::{EraseReceipt, NoProgress};
use filestore_core::keys::{KeyScope, NewKey};
use filestore_core::uploads::{Append, NewResumable};
use filestore_core::{
    FileStore, ListFilter, ListRequest, NewUpload, OrganizationId, Result, Scope,
};

use crate::child::ATTIC;
use crate::content;
use crate::oracle::Entry;
use crate::scenario::{self, Kept, Life};
use crate::settle::{self, all_records};
use crate::tally::Kind;
use crate::verify::{Findings, files_below};

/// The organizations that are erased: one whose files are at the provider, and one whose files are local.
const ERASED: [&str; 2] = ["2", "acme"];

/// A file of an organization that is not erased.
const SPARED: &str = "moved";

impl Life {
    /// Erases organizations, and then uploads for one of them again.
    pub(crate) async fn erase(&self) -> Result<()> {
        let [one, both] = [ERASED[..1].to_vec(), ERASED.to_vec()];
        for names in [one, both] {
            let list = names.iter().map(|name| name.parse()).collect::<Result<_>>()?;
            let new = NewKey::new("erased", Scope::Organizations(list), [KeyScope::Read]);
            self.store.keys().create(new).await?;
        }
        self.replace(self.named("replaced-there").await?).await?;
        self.replace(self.named("replaced").await?).await?;
        self.delete(self.named("deleted").await?).await?;

        for name in ERASED {
            self.erase_one(&name.parse()?).await?;
        }
        self.upload("acme", "after", Kept::Ready).await?;
        Ok(())
    }

    async fn erase_one(&self, organization: &OrganizationId) -> Result<()> {
        let new = NewUpload::new(organization.clone(), "crash".parse()?).with_name("unfinished");
        let upload = self.store.resumable().create(NewResumable::new(new)).await?.upload;
        self.piece(&upload, Append::at(0), b"a piece").await?;
        self.oracle.log(&Entry::CancelBegun(upload.address.to_segment()));

        let mut filter = ListFilter::default();
        filter.organization_id = Some(organization.clone());
        let mut request = ListRequest::new(filter);
        request.limit = Some(1000);
        let files = self.store.scoped(&Scope::All).list(&request).await?.items;
        let ids: Vec<_> = files.iter().map(|record| record.file_id.to_string()).collect();
        for id in &ids {
            self.oracle.log(&Entry::EraseBegun(id.clone()));
        }
        erase(&self.store, organization).await?;
        for id in &ids {
            self.oracle.log(&Entry::Erased(id.clone()));
        }
        Ok(())
    }
}

async fn erase(store: &FileStore, organization: &OrganizationId) -> Result<EraseReceipt> {
    store.admin().erase_organization(organization, &|| false, &NoProgress).await
}

/// Finishes the erasures of a killed life, and compares.
pub(crate) async fn check(home: &Path) -> Findings {
    let mut findings = Findings::default();
    if let Err(error) = finish(home, &mut findings).await {
        findings.expect(false, Kind::Broken, || format!("erasures: {}", error.chain()));
    }
    findings
}

async fn finish(home: &Path, findings: &mut Findings) -> Result<()> {
    let store = scenario::open(home).await?;
    for name in ERASED {
        // Replaced blobs at the provider stay listed until no late write can arrive: the receipt says so.
        erase(&store, &name.parse()?).await?;
    }
    store.close().await;
    drop(store);

    let store = settle::open(home).await?;
    for name in ERASED {
        let receipt = erase(&store, &name.parse()?).await?;
        findings.expect(receipt.is_complete, Kind::Orphan, || format!("{receipt:?}"));
    }
    compare(home, &store, findings).await?;
    store.close().await;
    drop(store);

    let store = settle::open(home).await?;
    compare(home, &store, findings).await?;
    store.close().await;
    Ok(())
}

/// Compares the remaining records, bytes and keys of the erased organizations, and a file of another organization.
async fn compare(home: &Path, store: &FileStore, findings: &mut Findings) -> Result<()> {
    let records = all_records(store).await?;
    for record in &records {
        let is_erased = ERASED.contains(&record.organization_id.as_str());
        findings.expect(!is_erased, Kind::Undeleted, || format!("{record:?}"));
    }
    let spared = records.iter().find(|record| record.original_name == SPARED);
    findings.expect(spared.is_some(), Kind::Lost, || format!("{SPARED} went with the others"));
    if let Some(record) = spared {
        let read = store.scoped(&Scope::All).read(record.file_id).await?;
        let is_whole = content::identify(&read).is_some();
        findings.expect(is_whole, Kind::Mixed, || format!("{record:?}"));
    }

    for place in ["data/blobs", "data/staging", ATTIC] {
        for name in files_below(&home.join(place)) {
            let is_erased = ERASED.iter().any(|erased| name.starts_with(&format!("{erased}/")));
            let is_left = is_erased || place == "data/staging";
            findings.expect(!is_left, Kind::Orphan, || format!("{place} has {name}"));
        }
    }
    let names_one = |scope: &Scope| match scope {
        Scope::All => false,
        Scope::Organizations(list) => list.iter().any(|one| ERASED.contains(&one.as_str())),
    };
    for key in store.keys().list() {
        let has_rights = key.revoked_at.is_none() && names_one(&key.organizations);
        findings.expect(!has_rights, Kind::Broken, || format!("{key:?} still opens a door"));
    }
    Ok(())
}
