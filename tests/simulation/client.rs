//! Clients, an administrator and the weather: what happens to the store in a simulated life.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use filestore_core::admin::{MigrateOptions, NoProgress};
use filestore_core::bindings::{BindingChange, NewBinding};
use filestore_core::internals::storage::{SimulatedProviders, Weather};
use filestore_core::internals::tasks::simulation;
use filestore_core::uploads::GivenName;
use filestore_core::{
    Clock, Error, ErrorKind, FileId, FileStore, NewBatch, NewUpload, OrganizationNumber,
    ProviderCode, Result, Scope,
};
use tokio::time::{sleep, timeout};

use super::content::Content;
use super::model::{File, Model, Shape};
use super::world::PROVIDERS;

/// Organizations, which are numbered from 1.
const ORGANIZATIONS: u64 = 4;

/// One client, which calls one after the other on files of its own.
pub(crate) struct Client<'a> {
    pub(crate) number: usize,
    pub(crate) store: &'a FileStore,
    pub(crate) clock: &'a Clock,
    pub(crate) model: &'a RefCell<Model>,
    pub(crate) own: &'a RefCell<Vec<FileId>>,
}

impl Client<'_> {
    /// Calls for ever.
    pub(crate) async fn run(&self) {
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
        match simulation::below(20) {
            0..4 => self.upload().await,
            4 => self.batch().await,
            5..7 => self.promote().await,
            7..10 => self.replace().await,
            10..12 => self.delete().await,
            12 => self.restore().await,
            _ => self.read().await,
        }
    }

    async fn upload(&self) -> Result<()> {
        let content = self.model.borrow_mut().fresh_content();
        let name = format!("upload-{}", content.0);
        let mut new = NewUpload::new(some_organization().into(), sub_system()).with_name(name);
        if simulation::below(3) == 0 {
            new = new.temp();
        }

        let record = self.store.upload(new, &content.bytes()[..]).await?;
        self.note("uploaded", record.file_id);
        self.model.borrow_mut().files.insert(record.file_id, File::new(content, record.expires_at));
        self.own.borrow_mut().push(record.file_id);
        Ok(())
    }

    async fn batch(&self) -> Result<()> {
        let (items, batch) = {
            let mut model = self.model.borrow_mut();
            model.next_batch += 1;
            let length = 2 + simulation::below(3);
            let contents: Vec<Content> = (0..length).map(|_| model.fresh_content()).collect();
            (contents, model.next_batch)
        };
        let named = items.iter().map(|content| {
            let name = format!("batch-{batch}-of-{}-content-{}", items.len(), content.0);
            (GivenName::named(name), content.bytes())
        });

        let new = NewBatch::new(some_organization().into(), sub_system());
        let records = self.store.batch(new, named).await?;

        for (record, content) in records.iter().zip(items) {
            self.note("uploaded in a batch", record.file_id);
            self.model.borrow_mut().files.insert(record.file_id, File::new(content, None));
            self.own.borrow_mut().push(record.file_id);
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
        let read = self.store.scoped(&Scope::All).read(id).await;
        self.model.borrow_mut().reads += 1;

        let now = self.clock.now();
        let file = self.model.borrow().files[&id].clone();
        match read {
            Ok(bytes) => match file.live_with(&bytes) {
                Some(shape) => self.with(id, |file| file.is(shape)),
                None => panic!("{id} has {} unknown bytes; it may be {file:?}", bytes.len()),
            },
            Err(error) if error.kind() == ErrorKind::NotFound => {
                assert!(file.may_be_gone(now), "{id} is gone at {now}; it may be {file:?}");
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
        let own = self.own.borrow();
        if own.is_empty() {
            return None;
        }

        // Mostly one of the latest, so that calls meet what the workers do with them.
        let back = simulation::below(if simulation::below(4) == 0 { own.len() as u64 } else { 8 });
        Some(own[own.len() - 1 - usize::try_from(back).unwrap().min(own.len() - 1)])
    }

    fn with(&self, id: FileId, change: impl FnOnce(&mut File)) {
        change(self.model.borrow_mut().files.get_mut(&id).expect("a file of the model"));
    }

    fn note(&self, what: &str, id: FileId) {
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

async fn pause(from_secs: u64, to_secs: u64) {
    let millis = from_secs * 1000 + simulation::below((to_secs - from_secs) * 1000);
    sleep(Duration::from_millis(millis)).await;
}

fn some_organization() -> OrganizationNumber {
    let number = i64::try_from(1 + simulation::below(ORGANIZATIONS)).unwrap();
    number.try_into().unwrap()
}

fn some_provider() -> ProviderCode {
    match simulation::below(3) {
        0 => ProviderCode::local(),
        n => PROVIDERS[usize::from(n == 1)].parse().unwrap(),
    }
}

fn sub_system() -> filestore_core::SubSystem {
    "simulated".parse().unwrap()
}
