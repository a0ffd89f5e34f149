//! Short lives of a store without a server, each with some kind of work, in a process of its own that is
//! killed at a step or whose calls fail.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use filestore_core::admin::{MigrateOptions, NoProgress};
use filestore_core::bindings::{BindingChange, NewBinding};
use filestore_core::internals::tasks::step::Step;
use filestore_core::uploads::{Append, BodyCheck, GivenName, NewResumable, ResumableUpload};
use filestore_core::{
    Error, ErrorKind, FileId, FileStore, NewBatch, NewUpload, OrganizationNumber, Replacement,
    Result, Scope, StoreConfig,
};
use filestore_server::Config;
use futures_util::stream;

use crate::backups;
use crate::child::{ATTIC, configuration};
use crate::content::{self, Tag};
use crate::oracle::{Entry, Oracle};
use crate::serve::{Sabotage, come_to};
use crate::settle::all_records;

/// A kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scenario {
    /// What the others find: files of every kind, and bindings.
    Base,
    /// A start on an empty directory.
    Fresh,
    /// A start on what the last process left.
    Start,
    Upload,
    Batch,
    Change,
    Delete,
    /// Uploads, batches and replaces that are written through to a provider.
    Through,
    Sync,
    Migrate,
    /// Snapshots to a directory and to a provider, and their end.
    Backup,
    /// A pause, in which the background does its part.
    Linger,
    /// Resumable uploads: a file, new bytes for a file, one that is cancelled.
    Resume,
    /// Erasures of organizations, each with keys, an unfinished upload and files in every state.
    Erase,
    /// Uploads beyond the number of events that are kept.
    Forget,
}

impl Scenario {
    /// All but the one that the others begin with.
    pub(crate) const ALL: [Self; 14] = [
        Self::Fresh,
        Self::Start,
        Self::Upload,
        Self::Batch,
        Self::Change,
        Self::Delete,
        Self::Through,
        Self::Sync,
        Self::Migrate,
        Self::Backup,
        Self::Linger,
        Self::Resume,
        Self::Erase,
        Self::Forget,
    ];

    /// Returns the name, as on the command line.
    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// A life to live.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[arg(long, value_enum)]
    scenario: Scenario,
    #[arg(long)]
    home: PathBuf,
    #[command(flatten)]
    sabotage: Sabotage,
}

/// The exit code of a life in which something was refused.
pub(crate) const REFUSED: u8 = 3;

/// The longest wait for what the background does.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// The quota of each organization, over which a replace is refused in its commit.
const QUOTA_BYTES: u64 = 3 << 20;

/// Lives, unless it is killed. What it began and what was acknowledged goes to the log of the home.
pub(crate) async fn live(options: Options) -> ExitCode {
    let Options { scenario, home, sabotage } = options;
    let oracle = Oracle::open(home.join("oracle.log"));
    backups::prepare(&home);
    sabotage.arm();

    let store = match open(&home).await {
        Ok(store) => store,
        Err(error) => {
            eprintln!("no start: {}", error.chain());
            return ExitCode::from(REFUSED);
        }
    };
    let life = Life { store: store.clone(), oracle };
    let outcome = life.live(scenario).await;
    store.close().await;

    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {}", scenario.name(), error.chain());
            ExitCode::from(REFUSED)
        }
    }
}

/// Opens the store of `home` with nothing kept back for later.
pub(crate) async fn open(home: &Path) -> Result<FileStore> {
    let mut config = Config::load(configuration(home)).expect("a good configuration").store;
    with_haste(&mut config);
    backups::configure(&mut config, home);
    FileStore::builder(home.join("data")).config(config).open().await
}

fn with_haste(config: &mut StoreConfig) {
    config.purge_grace = Duration::ZERO;
    config.quota_bytes = Some(QUOTA_BYTES);
    config.sync.first_pause = Duration::ZERO;
    config.uploads.lifetime = Duration::from_hours(1);
}

pub(crate) struct Life {
    pub(crate) store: FileStore,
    pub(crate) oracle: Oracle,
}

impl Life {
    async fn live(&self, scenario: Scenario) -> Result<()> {
        match scenario {
            Scenario::Base => self.lay_the_base().await,
            Scenario::Fresh | Scenario::Start => Ok(()),
            Scenario::Upload => self.upload_some().await,
            Scenario::Batch => self.batch("acme").await,
            Scenario::Change => self.change().await,
            Scenario::Delete => self.delete_and_purge().await,
            Scenario::Through => self.write_through().await,
            Scenario::Sync => self.sync().await,
            Scenario::Migrate => self.migrate().await,
            Scenario::Backup => self.back_up().await,
            Scenario::Linger => self.linger().await,
            Scenario::Resume => self.resume().await,
            Scenario::Erase => self.erase().await,
            Scenario::Forget => self.forget().await,
        }
    }

    async fn lay_the_base(&self) -> Result<()> {
        for (number, provider, sync) in [(1, ATTIC, true), (2, ATTIC, false), (3, "LOCAL", false)] {
            let code = provider.parse()?;
            let mut new = NewBinding::new(organization(number), "x", code);
            if sync {
                new = new.with_sync();
            }
            self.store.bindings().create(new).await?;
        }
        for (organization, name) in [
            ("acme", "replaced"),
            ("acme", "edited"),
            ("acme", "deleted"),
            ("acme", "purged"),
            ("2", "replaced-there"),
            ("3", "moved"),
        ] {
            self.upload(organization, name, Kept::Ready).await?;
        }
        self.upload("acme", "promoted", Kept::Temp).await?;
        Ok(())
    }

    async fn upload_some(&self) -> Result<()> {
        self.upload("acme", "one", Kept::Ready).await?;
        self.upload("acme", "two", Kept::Temp).await?;
        let tag = self.fresh_tag(3);
        let id = self.upload_tag("acme", "picture", Kept::Ready, tag * 8).await?;
        self.store.scoped(&Scope::All).variant(id, 200).await?;
        Ok(())
    }

    async fn change(&self) -> Result<()> {
        let id = self.named("replaced").await?;
        self.replace(id).await?;
        let id = self.named("promoted").await?;
        self.store.scoped(&Scope::All).make_ready(id).await?;
        self.oracle.log(&Entry::Promoted(id.to_string()));
        self.store.admin().purge(&NoProgress).await?;
        Ok(())
    }

    async fn delete_and_purge(&self) -> Result<()> {
        let id = self.named("deleted").await?;
        self.delete(id).await?;
        self.oracle.log(&Entry::RestoreBegun(id.to_string()));
        self.store.scoped(&Scope::All).restore(id).await?;
        self.oracle.log(&Entry::Restored(id.to_string()));

        let id = self.named("purged").await?;
        self.replace(id).await?;
        self.delete(id).await?;
        self.store.admin().purge(&NoProgress).await?;
        Ok(())
    }

    async fn write_through(&self) -> Result<()> {
        self.upload("2", "there", Kept::Ready).await?;
        self.batch("2").await?;
        let id = self.named("replaced-there").await?;
        self.replace(id).await?;

        // Refused in its commit, when the object is at the provider already.
        let large = vec![7; usize::try_from(QUOTA_BYTES).expect("it fits") + 1];
        let refused = self.store.scoped(&Scope::All).replace(id, &large[..]).await;
        match refused {
            Err(error) if error.kind() == ErrorKind::QuotaExceeded => {}
            Err(error) => return Err(error),
            Ok(_) => panic!("a quota was passed over"),
        }
        self.delete(id).await?;
        self.store.admin().purge(&NoProgress).await?;
        Ok(())
    }

    async fn sync(&self) -> Result<()> {
        let id = self.upload("1", "synced", Kept::Ready).await?;
        self.store.admin().sync(Arc::new(NoProgress)).await?;
        self.store.admin().purge(&NoProgress).await?;
        self.delete(id).await?;
        self.store.admin().purge(&NoProgress).await?;
        Ok(())
    }

    async fn migrate(&self) -> Result<()> {
        for to in [ATTIC, "LOCAL"] {
            let mut change = BindingChange::default();
            change.provider = Some(to.parse()?);
            self.store.bindings().update(organization(3), change).await?;
            let options = MigrateOptions::default();
            self.store
                .admin()
                .migrate(organization(3), &to.parse()?, options, &|| false, Arc::new(NoProgress))
                .await?;
            self.store.admin().purge(&NoProgress).await?;
        }
        Ok(())
    }

    async fn back_up(&self) -> Result<()> {
        backups::take(&self.store).await?;
        let id = self.named("purged").await?;
        self.delete(id).await?;
        self.store.admin().purge(&NoProgress).await?;
        self.upload("acme", "saved", Kept::Ready).await?;
        backups::take(&self.store).await?;
        backups::prune(&self.store).await
    }

    /// Waits until the background has done its part of an upload; not for ever, as that may fail.
    async fn linger(&self) -> Result<()> {
        self.upload("acme", "one", Kept::Ready).await?;
        come_to(Step::RenamesSynced, LONGEST_PAUSE).await;
        Ok(())
    }

    async fn resume(&self) -> Result<()> {
        let tag = self.fresh_tag(1) * 8 + 1;
        let new = NewUpload::new("acme".parse()?, "crash".parse()?).with_name("resumed");
        let file = self.receive(NewResumable::new(new), tag).await?;
        self.oracle.log(&Entry::Uploaded(tag, file.to_string()));

        let id = self.named("replaced").await?;
        let tag = self.fresh_tag(1) * 8 + 1;
        self.oracle.log(&Entry::ReplaceBegun(id.to_string(), tag));
        self.receive(NewResumable::replace(id, Replacement::new(), Scope::All), tag).await?;
        self.oracle.log(&Entry::Replaced(id.to_string(), tag));
        self.store.admin().purge(&NoProgress).await?;

        let new = NewUpload::new("acme".parse()?, "crash".parse()?).with_name("cancelled");
        let upload = self.store.resumable().create(NewResumable::new(new)).await?.upload;
        self.piece(&upload, Append::at(0), b"a piece").await?;
        self.oracle.log(&Entry::CancelBegun(upload.address.to_segment()));
        self.store.resumable().cancel(&upload.address, &Scope::All).await?;
        self.oracle.log(&Entry::Cancelled(upload.address.to_segment()));
        Ok(())
    }

    async fn forget(&self) -> Result<()> {
        for name in ["one", "two", "three"] {
            self.upload("acme", name, Kept::Ready).await?;
        }
        let mut config = (*self.store.config()).clone();
        config.events.keep_max = 2;
        self.store.reload(config).await?;
        self.store.admin().upkeep().await?;
        self.upload("acme", "four", Kept::Ready).await?;
        Ok(())
    }

    /// Receives the content of a tag in three pieces, with a piece between that has a wrong checksum. The commit
    /// after the last piece is refused for now, so the last byte comes again, and its first copy is cut off.
    async fn receive(&self, new: NewResumable, tag: Tag) -> Result<FileId> {
        let bytes = content::of(tag);
        let (third, length) = (bytes.len() / 3, bytes.len() as u64);
        let mut upload = self.store.resumable().create(new.with_length(length)).await?.upload;
        upload = self.piece(&upload, Append::at(0), &bytes[..third]).await?;

        let mut wrong = Append::at(upload.offset);
        wrong.check = Some(Box::new(Wrong));
        match self.piece(&upload, wrong, b"other bytes").await {
            Err(error) if error.kind() == ErrorKind::ChecksumMismatch => {}
            Err(error) => return Err(error),
            Ok(_) => panic!("a wrong checksum was passed over"),
        }
        upload = self.piece(&upload, Append::at(third as u64), &bytes[third..2 * third]).await?;

        let mut refused = Append::at(2 * third as u64);
        refused.recheck =
            Some(Box::new(|| Box::pin(async { Err(Error::new(ErrorKind::Busy, "not now")) })));
        match self.piece(&upload, refused, &bytes[2 * third..]).await {
            Err(error) if error.kind() == ErrorKind::Busy => {}
            Err(error) => return Err(error),
            Ok(_) => panic!("a refused commit was made"),
        }
        upload = self.piece(&upload, Append::at(length - 1), &bytes[bytes.len() - 1..]).await?;
        Ok(upload.file_id.expect("the upload is whole"))
    }

    pub(crate) async fn piece(
        &self,
        upload: &ResumableUpload,
        append: Append,
        bytes: &[u8],
    ) -> Result<ResumableUpload> {
        let body = stream::iter([Ok::<_, Error>(bytes.to_vec().into())]);
        let upload = self.store.resumable().append(&upload.address, append, body).await?;
        self.oracle.log(&Entry::Told(upload.address.to_segment(), upload.offset));
        Ok(upload)
    }

    pub(crate) async fn upload(
        &self,
        organization: &str,
        name: &str,
        kept: Kept,
    ) -> Result<FileId> {
        // Odd tags are no pictures.
        let tag = self.fresh_tag(1) * 8 + 1;
        self.upload_tag(organization, name, kept, tag).await
    }

    async fn upload_tag(
        &self,
        organization: &str,
        name: &str,
        kept: Kept,
        tag: Tag,
    ) -> Result<FileId> {
        let mut new = NewUpload::new(organization.parse()?, "crash".parse()?).with_name(name);
        if kept == Kept::Temp {
            new = new.temp();
        }
        let record = self.store.upload(new, &content::of(tag)[..]).await?;
        self.oracle.log(&Entry::Uploaded(tag, record.file_id.to_string()));
        Ok(record.file_id)
    }

    async fn batch(&self, organization: &str) -> Result<()> {
        let first = self.fresh_tag(3) * 8 + 1;
        self.oracle.log(&Entry::BatchBegun(first, 3));
        let named = (first..first + 3)
            .map(|tag| (GivenName::named(format!("batch-{first}")), content::of(tag).into()));
        let new = NewBatch::new(organization.parse()?, "crash".parse()?);
        let records = self.store.batch(new, named).await?;

        let ids = records.iter().map(|record| record.file_id.to_string()).collect();
        self.oracle.log(&Entry::BatchDone(first, ids));
        Ok(())
    }

    pub(crate) async fn replace(&self, id: FileId) -> Result<()> {
        let tag = self.fresh_tag(1) * 8 + 1;
        self.oracle.log(&Entry::ReplaceBegun(id.to_string(), tag));
        self.store.scoped(&Scope::All).replace(id, &content::of(tag)[..]).await?;
        self.oracle.log(&Entry::Replaced(id.to_string(), tag));
        Ok(())
    }

    pub(crate) async fn delete(&self, id: FileId) -> Result<()> {
        self.oracle.log(&Entry::DeleteBegun(id.to_string()));
        self.store.scoped(&Scope::All).delete(id).await?;
        self.oracle.log(&Entry::Deleted(id.to_string()));
        Ok(())
    }

    pub(crate) async fn named(&self, name: &str) -> Result<FileId> {
        let records = all_records(&self.store).await?;
        let found = records.iter().find(|record| record.original_name == name);
        Ok(found.expect("the base has the file").file_id)
    }

    fn fresh_tag(&self, count: u64) -> Tag {
        self.oracle.tags(count)
    }
}

/// A checksum that holds for no bytes.
struct Wrong;

impl BodyCheck for Wrong {
    fn update(&mut self, _bytes: &[u8]) {}

    fn holds(&self) -> bool {
        false
    }
}

fn organization(number: i64) -> OrganizationNumber {
    number.try_into().expect("a number of an organization")
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Ready,
    Temp,
}
