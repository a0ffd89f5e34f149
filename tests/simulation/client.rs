//! Clients, an administrator and the weather: what happens to the store in a simulated life.
//! `uploads` has the resumable uploads of the clients, and `erasures` the other administrator.

use std::cell::RefCell;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use filestore_core::admin::{MigrateOptions, NoProgress};
use filestore_core::bindings::{BindingChange, NewBinding};
use filestore_core::internals::storage::{SimulatedProviders, Weather};
use filestore_core::internals::tasks::simulation;
use filestore_core::signing::UploadPermit;
use filestore_core::uploads::{GivenName, UploadClaims, Uploaded};
use filestore_core::{
    Clock, Error, ErrorKind, FileId, FileStore, NewBatch, NewUpload, OrganizationNumber,
    ProviderCode, Result, Scope,
};
use tokio::time::{sleep, timeout};

use super::content::Content;
use super::model::{Fate, File, Model, Origin, Shape};
use super::uploads::Resumable;
use super::world::PROVIDERS;

/// Organizations, which are numbered from 1.
const ORGANIZATIONS: u64 = 4;

/// The time for which a signed URL is good.
const SIGNED_FOR: Duration = Duration::from_hours(1);

/// The files and uploads of a client, across all lives of the process.
#[derive(Default)]
pub(crate) struct Own {
    pub(crate) files: RefCell<Vec<FileId>>,
    pub(crate) uploads: RefCell<Vec<Resumable>>,
    /// Signed URLs that were not used yet.
    permits: RefCell<Vec<(UploadPermit, Origin)>>,
}

/// One client, which calls one after the other on files of its own.
pub(crate) struct Client<'a> {
    pub(crate) number: usize,
    pub(crate) store: &'a FileStore,
    pub(crate) clock: &'a Clock,
    pub(crate) model: &'a RefCell<Model>,
    pub(crate) own: &'a Own,
}

impl Client<'_> {
    /// Calls for ever.
    pub(crate) async fn run(&self) {
        self.ask_for_all().await;
        loop {
            pause(2, 60).await;
            let patience = if simulation::below(10) == 0 {
                Duration::from_millis(simulation::below(5_000))
            } else {
                Duration::from_hours(24)
            };
            let outcome = timeout(patience, self.call()).await.unwrap_or_else(|_| {
                self.model.borrow_mut().given_up += 1;
                Ok(())
            });

            let mut model = self.model.borrow_mut();
            model.calls += 1;
            if let Err(error) = outcome {
                model.refused += 1;
                self.check_refusal(&error);
            }
        }
    }

    async fn call(&self) -> Result<()> {
        match simulation::below(30) {
            0..4 => self.upload().await,
            4 => self.batch().await,
            5..7 => self.promote().await,
            7..10 => self.replace().await,
            10..12 => self.delete().await,
            12 => self.restore().await,
            13..20 => self.read().await,
            20..22 => self.upload_slowly().await,
            22..24 => self.upload_signed().await,
            _ => self.resume().await,
        }
    }

    async fn upload(&self) -> Result<()> {
        let organization = some_organization();
        let (content, origin) = self.model.borrow_mut().begin_upload(organization);
        let mut new = named_upload(organization, "upload", content);
        if simulation::below(3) == 0 {
            new = new.temp();
        }

        let record = self.store.upload(new, &content.bytes()[..]).await?;
        self.note("uploaded", record.file_id);
        self.insert(record.file_id, File::new(content, origin, record.expires_at));
        Ok(())
    }

    /// Uploads with pauses of up to minutes between the bytes: an erasure may begin and end meanwhile.
    async fn upload_slowly(&self) -> Result<()> {
        let organization = some_organization();
        let (content, origin) = self.model.borrow_mut().begin_upload(organization);
        let claims = UploadClaims::new(organization.into());
        self.upload_in_pieces(claims, "slow", content, origin).await
    }

    /// Has a URL for an upload signed, or uses an earlier one, which is good for one file.
    async fn upload_signed(&self) -> Result<()> {
        let earlier = self.own.permits.borrow_mut().pop();
        let Some((permit, origin)) = earlier.filter(|_| simulation::below(3) > 0) else {
            let origin = Origin {
                organization: some_organization(),
                begun: self.model.borrow_mut().next_moment(),
            };
            let nonce = format!("client-{}-at-{}", self.number, origin.begun);
            let permit = UploadPermit::new(nonce, self.clock.now().plus(SIGNED_FOR))?;
            let permit = permit.signed_in(self.store.uploads().era());
            self.own.permits.borrow_mut().push((permit, origin));
            return Ok(());
        };

        let content = self.model.borrow_mut().begin_upload_of(origin);
        let claims = UploadClaims::new(origin.organization.into()).with_permit(permit);
        self.upload_in_pieces(claims.clone(), "signed", content, origin).await?;
        let again = self.store.uploads().begin(claims).await;
        assert!(again.is_err(), "a signed URL was good for two files");
        Ok(())
    }

    async fn upload_in_pieces(
        &self,
        claims: UploadClaims,
        name: &str,
        content: Content,
        origin: Origin,
    ) -> Result<()> {
        let mut session = self.store.uploads().begin(claims).await?;
        let bytes = content.bytes();
        for piece in bytes.chunks(bytes.len() / 2 + 1) {
            session.write(bytes.slice_ref(piece)).await?;
            pause(0, 120).await;
        }

        match session.commit(named_upload(origin.organization, name, content)).await? {
            Uploaded::New(record) => {
                self.note("uploaded in pieces", record.file_id);
                self.insert(record.file_id, File::new(content, origin, record.expires_at));
                Ok(())
            }
            Uploaded::Replayed(_) => panic!("a reply without a key"),
        }
    }

    async fn batch(&self) -> Result<()> {
        let organization = some_organization();
        let (items, batch) = {
            let mut model = self.model.borrow_mut();
            model.next_batch += 1;
            let length = 2 + simulation::below(3);
            let items: Vec<_> = (0..length).map(|_| model.begin_upload(organization)).collect();
            (items, model.next_batch)
        };
        let named = items.iter().map(|(content, _)| {
            let name = format!("batch-{batch}-of-{}-content-{}", items.len(), content.0);
            (GivenName::named(name), content.bytes())
        });

        let new = NewBatch::new(organization.into(), sub_system());
        let records = self.store.batch(new, named).await?;

        for (record, (content, origin)) in records.iter().zip(items) {
            self.note("uploaded in a batch", record.file_id);
            self.insert(record.file_id, File::new(content, origin, None));
        }
        Ok(())
    }

    async fn promote(&self) -> Result<()> {
        let Some(id) = self.some_file() else { return Ok(()) };
        let changed = self.store.scoped(&Scope::All).make_ready(id).await?;

        self.note("made ready", id);
        self.with(id, |file| file.expires_at = changed.record.expires_at);
        Ok(())
    }

    async fn replace(&self) -> Result<()> {
        let Some(id) = self.some_file() else { return Ok(()) };
        let content = self.model.borrow_mut().fresh_content();
        self.with(id, |file| file.may_become(Shape::Live(content)));

        let replaced = self.store.scoped(&Scope::All).replace(id, &content.bytes()[..]).await;
        if let Err(error) = &replaced
            && leaves_nothing(error)
        {
            self.with(id, |file| file.may_be.retain(|shape| *shape != Shape::Live(content)));
        }

        replaced?;
        self.note("replaced", id);
        self.with(id, |file| file.is(Shape::Live(content)));
        Ok(())
    }

    async fn delete(&self) -> Result<()> {
        let Some(id) = self.some_file() else { return Ok(()) };
        self.with(id, |file| {
            for shape in file.may_be.clone() {
                file.may_become(Shape::Deleted(shape.content()));
            }
        });

        self.store.scoped(&Scope::All).delete(id).await?;
        self.note("deleted", id);
        self.with(id, |file| file.may_be.retain(|shape| matches!(shape, Shape::Deleted(_))));
        Ok(())
    }

    async fn restore(&self) -> Result<()> {
        let Some(id) = self.some_file() else { return Ok(()) };
        self.with(id, |file| {
            for shape in file.may_be.clone() {
                file.may_become(Shape::Live(shape.content()));
            }
        });

        let record = self.store.scoped(&Scope::All).restore(id).await?;
        self.note("restored", id);
        self.with(id, |file| {
            file.may_be.retain(|shape| matches!(shape, Shape::Live(_)));
            file.expires_at = record.expires_at;
        });
        Ok(())
    }

    /// Reads a file: an acknowledged content or nothing, whichever the model allows.
    async fn read(&self) -> Result<()> {
        let Some(id) = self.some_file() else { return Ok(()) };
        let began = self.model.borrow_mut().next_moment();
        let read = self.store.scoped(&Scope::All).read(id).await;
        self.model.borrow_mut().reads += 1;

        let now = self.clock.now();
        let file = self.model.borrow().files[&id].clone();
        match read {
            Ok(bytes) => {
                let fate = self.model.borrow().fate(file.origin, began);
                assert_ne!(fate, Fate::Erased, "{id} is back after an erasure: {file:?}");
                match file.live_with(&bytes) {
                    Some(shape) => self.with(id, |file| file.is(shape)),
                    None => panic!("{id} has {} unknown bytes; it may be {file:?}", bytes.len()),
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let may_be_gone = self.model.borrow().may_be_gone(&file, now);
                assert!(may_be_gone, "{id} is gone at {now}; it may be {file:?}");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Accepts the errors that a client may meet beside faults. A fault of the service's own is none.
    fn check_refusal(&self, error: &Error) {
        let kind = error.kind();
        simulation::note(|| format!("client {}: {}", self.number, kind.code()));
        assert!(
            !matches!(kind, ErrorKind::Internal | ErrorKind::StorageFull | ErrorKind::Unusable),
            "client {}: {}",
            self.number,
            error.chain()
        );
    }

    fn some_file(&self) -> Option<FileId> {
        let own = self.own.files.borrow();
        if own.is_empty() {
            return None;
        }

        // Mostly one of the latest, so that calls meet what the workers do with them.
        let back = simulation::below(if simulation::below(4) == 0 { own.len() as u64 } else { 8 });
        Some(own[own.len() - 1 - usize::try_from(back).unwrap().min(own.len() - 1)])
    }

    /// Notes an acknowledged file.
    pub(crate) fn insert(&self, id: FileId, file: File) {
        self.model.borrow_mut().files.insert(id, file);
        self.own.files.borrow_mut().push(id);
    }

    fn with(&self, id: FileId, change: impl FnOnce(&mut File)) {
        change(self.model.borrow_mut().files.get_mut(&id).expect("a file of the model"));
    }

    pub(crate) fn note(&self, what: &str, id: impl Display) {
        simulation::note(|| format!("{} client {} {what} {id}", self.clock.now(), self.number));
    }
}

/// Tells if the error says that nothing was changed. The others may come after the commit.
fn leaves_nothing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Conflict | ErrorKind::InvalidTransition)
}

/// Binds organizations, queues and migrates their files, and purges, for ever.
pub(crate) async fn administrate(store: &FileStore) {
    loop {
        pause(60, 600).await;
        let organization = some_organization();
        let outcome = match simulation::below(6) {
            0..3 => bind(store, organization).await,
            3 => store.admin().sync_enqueue(organization).await.map(drop),
            4 => migrate(store, organization).await,
            _ => store.admin().sync_retry(None).await.map(drop),
        };

        if let Err(error) = outcome {
            simulation::note(|| format!("administrator: {}", error.kind().code()));
            assert_ne!(error.kind(), ErrorKind::Internal, "{}", error.chain());
        }
    }
}

async fn bind(store: &FileStore, organization: OrganizationNumber) -> Result<()> {
    let provider = some_provider();
    let sync = simulation::below(2) == 0;
    let mut new = NewBinding::new(organization, "an organization", provider.clone());
    if sync {
        new = new.with_sync();
    }

    match store.bindings().create(new).await {
        Err(error) if error.kind() == ErrorKind::BindingAlreadyActive => {
            let mut change = BindingChange::default();
            (change.provider, change.sync_enabled) = (Some(provider), Some(sync));
            store.bindings().update(organization, change).await.map(drop)
        }
        outcome => outcome.map(drop),
    }
}

async fn migrate(store: &FileStore, organization: OrganizationNumber) -> Result<()> {
    let (to, options) = (some_provider(), MigrateOptions::default());
    let progress = Arc::new(NoProgress);
    store.admin().migrate(organization, &to, options, &|| false, progress).await.map(drop)
}

/// Changes the behaviour of the providers, for ever. Each is fair about half of the time.
pub(crate) async fn weather(providers: &SimulatedProviders) {
    let bad = [Weather::Slow, Weather::Flaky, Weather::Throttled, Weather::Dead, Weather::Hung];
    loop {
        pause(30, 900).await;
        let index = usize::try_from(simulation::below(10)).unwrap();
        let weather = bad.get(index).copied().unwrap_or(Weather::Fair);
        let provider = PROVIDERS[usize::from(simulation::below(2) == 0)].parse().unwrap();
        simulation::note(|| format!("weather of {provider}: {weather:?}"));
        providers.set_weather(&provider, weather);
    }
}

pub(crate) async fn pause(from_secs: u64, to_secs: u64) {
    pause_for(from_secs * 1000 + simulation::below((to_secs - from_secs) * 1000)).await;
}

/// Lets simulated time pass.
pub(crate) async fn pause_for(millis: u64) {
    sleep(Duration::from_millis(millis)).await;
}

/// Lists all organizations.
pub(crate) fn organizations() -> impl Iterator<Item = OrganizationNumber> {
    (1..=ORGANIZATIONS).map(|number| i64::try_from(number).unwrap().try_into().unwrap())
}

pub(crate) fn some_organization() -> OrganizationNumber {
    let number = i64::try_from(1 + simulation::below(ORGANIZATIONS)).unwrap();
    number.try_into().unwrap()
}

fn some_provider() -> ProviderCode {
    match simulation::below(3) {
        0 => ProviderCode::local(),
        n => PROVIDERS[usize::from(n == 1)].parse().unwrap(),
    }
}

/// Describes a file whose name ends with the number of its content.
pub(crate) fn named_upload(
    organization: OrganizationNumber,
    name: &str,
    content: Content,
) -> NewUpload {
    let name = format!("{name}-{}", content.0);
    NewUpload::new(organization.into(), sub_system()).with_name(name)
}

fn sub_system() -> filestore_core::SubSystem {
    "simulated".parse().unwrap()
}
