//! Simulated providers: objects in memory, behind faults that a test chooses.
//!
//! # Purpose
//! Only the requests are simulated. Retries, timeouts, verification and budgets are the real code. Like a
//! real provider, a simulated provider keeps its objects when the store is opened again.
//!
//! # Locking
//! All code runs on the single thread of the [`simulation`](crate::tasks::simulation).

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use opendal::raw::oio;
use opendal::raw::{
    Layer, OpCompose, OpCopy, OpCreateDir, OpDelete, OpList, OpPresign, OpRead, OpRename,
    OpRestore, OpStat, OpWrite, RpCreateDir, RpPresign, RpRead, RpRename, RpRestore, RpStat,
    Service, ServiceInfo, Servicer,
};
use opendal::{
    Buffer, BytesRange, Capability, Error, ErrorKind, Metadata, OperationContext, Operator, Result,
};
use parking_lot::Mutex;
use tokio::time::sleep;

use crate::domain::provider::ProviderCode;
use crate::tasks::simulation;

/// The behaviour of a simulated provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weather {
    /// Each request takes up to 30 ms.
    Fair,
    /// Each request takes up to 8 s.
    Slow,
    /// Three requests in ten fail, half of them after they took effect.
    Flaky,
    /// Four requests in five are refused because of too many requests.
    Throttled,
    /// Every request fails at once.
    Dead,
    /// No request is answered.
    Hung,
}

thread_local! {
    static PROVIDERS: RefCell<Option<BTreeMap<ProviderCode, Provider>>> =
        const { RefCell::new(None) };
}

#[derive(Clone)]
struct Provider {
    objects: Operator,
    weather: Arc<Mutex<Weather>>,
}

/// The providers of this thread's simulation: all providers of scheme `memory` that a store on this thread
/// opens. Dropping the value removes their objects.
#[derive(Debug)]
pub struct SimulatedProviders(PhantomData<*const ()>);

impl SimulatedProviders {
    /// Begins a simulation without providers.
    ///
    /// # Panics
    /// If this thread already has simulated providers.
    #[must_use = "the providers end with the value"]
    pub fn enter() -> Self {
        let before = PROVIDERS.replace(Some(BTreeMap::new()));
        assert!(before.is_none(), "a thread has one set of simulated providers");
        Self(PhantomData)
    }

    /// Sets the behaviour of a provider, from the next request on.
    ///
    /// # Panics
    /// If no store has opened the provider yet.
    pub fn set_weather(&self, code: &ProviderCode, weather: Weather) {
        *provider(code).weather.lock() = weather;
    }

    /// Lists the paths of all objects of a provider in order, without faults.
    ///
    /// # Panics
    /// If no store has opened the provider yet.
    pub async fn objects(&self, code: &ProviderCode) -> Vec<String> {
        let options = opendal::options::ListOptions { recursive: true, ..Default::default() };
        let objects = provider(code).objects;
        let entries = objects.list_options("", options).await.expect("memory lists its objects");
        entries
            .into_iter()
            .filter(|e| e.metadata().is_file())
            .map(|e| e.path().to_owned())
            .collect()
    }
}

impl Drop for SimulatedProviders {
    fn drop(&mut self) {
        PROVIDERS.take();
    }
}

fn provider(code: &ProviderCode) -> Provider {
    PROVIDERS.with_borrow(|providers| {
        let providers = providers.as_ref().expect("the value lives as long as its providers");
        providers.get(code).cloned().unwrap_or_else(|| panic!("no store has opened {code}"))
    })
}

/// Adds the simulated faults in front of an operator, and persistent objects behind them. Without a
/// simulation, returns `fresh` unchanged.
pub(super) fn behind_faults(code: &ProviderCode, fresh: Operator) -> Operator {
    PROVIDERS.with_borrow_mut(|providers| {
        let Some(providers) = providers else { return fresh };

        let provider = providers.entry(code.clone()).or_insert_with(|| Provider {
            objects: fresh,
            weather: Arc::new(Mutex::new(Weather::Fair)),
        });
        let faults = Faults { code: code.clone(), weather: Arc::clone(&provider.weather) };
        provider.objects.clone().layer(faults)
    })
}

/// A layer that delays requests, refuses them, or loses their replies.
#[derive(Debug, Clone)]
struct Faults {
    code: ProviderCode,
    weather: Arc<Mutex<Weather>>,
}

impl Faults {
    /// Sends a request through the current weather.
    async fn pass<T>(
        &self,
        what: &str,
        path: &str,
        request: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let weather = *self.weather.lock();
        simulation::note(|| format!("{} {weather:?} {what} {path}", self.code));

        let chance = simulation::below(100);
        match weather {
            Weather::Hung => std::future::pending().await,
            Weather::Dead => {
                wait_up_to(20).await;
                Err(refusal(ErrorKind::Unexpected, "connection refused"))
            }
            Weather::Throttled if chance < 80 => {
                wait_up_to(20).await;
                Err(refusal(ErrorKind::RateLimited, "slow down"))
            }
            Weather::Flaky if chance < 15 => {
                wait_up_to(200).await;
                Err(refusal(ErrorKind::Unexpected, "connection reset before the request"))
            }
            Weather::Flaky if chance < 30 => {
                let _lost = request.await;
                wait_up_to(200).await;
                Err(refusal(ErrorKind::Unexpected, "connection reset before the reply"))
            }
            Weather::Slow => at_a_moment_within(8_000, request).await,
            Weather::Fair | Weather::Flaky | Weather::Throttled => {
                at_a_moment_within(30, request).await
            }
        }
    }

    fn wrap<T>(&self, inner: T, path: &str) -> Faulty<T> {
        Faulty { inner, faults: self.clone(), path: path.to_owned() }
    }
}

/// Waits, takes effect, and waits for the reply. If the process ends between the two waits, the effect
/// remains unknown.
async fn at_a_moment_within<T>(
    limit_millis: u64,
    request: impl Future<Output = Result<T>>,
) -> Result<T> {
    wait_up_to(limit_millis / 2).await;
    let reply = request.await;
    wait_up_to(limit_millis / 2).await;
    reply
}

async fn wait_up_to(limit_millis: u64) {
    sleep(Duration::from_micros(simulation::below(limit_millis * 1000))).await;
}

fn refusal(kind: ErrorKind, message: &'static str) -> Error {
    Error::new(kind, message).set_temporary()
}

impl Layer for Faults {
    fn apply_service(&self, inner: Servicer) -> Servicer {
        Arc::new(FaultyService { inner, faults: self.clone() })
    }
}

#[derive(Debug)]
struct FaultyService {
    inner: Servicer,
    faults: Faults,
}

impl Service for FaultyService {
    type Reader = Faulty<oio::Reader>;
    type Writer = Faulty<oio::Writer>;
    type Lister = oio::Lister;
    type Deleter = Faulty<oio::Deleter>;
    type Copier = oio::Copier;
    type Composer = oio::Composer;

    fn info(&self) -> ServiceInfo {
        self.inner.info()
    }

    fn capability(&self) -> Capability {
        self.inner.capability()
    }

    async fn create_dir(
        &self,
        context: &OperationContext,
        path: &str,
        args: OpCreateDir,
    ) -> Result<RpCreateDir> {
        self.inner.create_dir(context, path, args).await
    }

    fn read(&self, context: &OperationContext, path: &str, args: OpRead) -> Result<Self::Reader> {
        self.inner.read(context, path, args).map(|reader| self.faults.wrap(reader, path))
    }

    fn write(&self, context: &OperationContext, path: &str, args: OpWrite) -> Result<Self::Writer> {
        self.inner.write(context, path, args).map(|writer| self.faults.wrap(writer, path))
    }

    fn copy(
        &self,
        context: &OperationContext,
        from: &str,
        to: &str,
        args: OpCopy,
    ) -> Result<Self::Copier> {
        self.inner.copy(context, from, to, args)
    }

    fn compose(
        &self,
        context: &OperationContext,
        to: &str,
        args: OpCompose,
    ) -> Result<Self::Composer> {
        self.inner.compose(context, to, args)
    }

    async fn rename(
        &self,
        context: &OperationContext,
        from: &str,
        to: &str,
        args: OpRename,
    ) -> Result<RpRename> {
        self.inner.rename(context, from, to, args).await
    }

    async fn restore(
        &self,
        context: &OperationContext,
        path: &str,
        args: OpRestore,
    ) -> Result<RpRestore> {
        self.inner.restore(context, path, args).await
    }

    async fn stat(&self, context: &OperationContext, path: &str, args: OpStat) -> Result<RpStat> {
        self.faults.pass("stat", path, self.inner.stat(context, path, args)).await
    }

    fn delete(&self, context: &OperationContext) -> Result<Self::Deleter> {
        self.inner.delete(context).map(|deleter| self.faults.wrap(deleter, ""))
    }

    fn list(&self, context: &OperationContext, path: &str, args: OpList) -> Result<Self::Lister> {
        self.inner.list(context, path, args)
    }

    async fn presign(
        &self,
        context: &OperationContext,
        path: &str,
        args: OpPresign,
    ) -> Result<RpPresign> {
        self.inner.presign(context, path, args).await
    }
}

/// The reader, writer or deleter of an object, behind the faults.
struct Faulty<T> {
    inner: T,
    faults: Faults,
    path: String,
}

impl<T> fmt::Debug for Faulty<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").field("path", &self.path).finish_non_exhaustive()
    }
}

impl<T: oio::Read> oio::Read for Faulty<T> {
    async fn open(&self, range: BytesRange) -> Result<(RpRead, Box<dyn oio::ReadStreamDyn>)> {
        self.faults.pass("open", &self.path, self.inner.open(range)).await
    }

    async fn read(&self, range: BytesRange) -> Result<(RpRead, Buffer)> {
        self.faults.pass("read", &self.path, self.inner.read(range)).await
    }
}

impl<T: oio::Write> oio::Write for Faulty<T> {
    async fn write(&mut self, bytes: Buffer) -> Result<()> {
        self.inner.write(bytes).await
    }

    async fn copy_from(&mut self, path: &str, args: OpRead, range: BytesRange) -> Result<()> {
        self.inner.copy_from(path, args, range).await
    }

    async fn close(&mut self) -> Result<Metadata> {
        self.faults.pass("put", &self.path, self.inner.close()).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.inner.abort().await
    }
}

impl<T: oio::Delete> oio::Delete for Faulty<T> {
    async fn delete(&mut self, path: &str, args: OpDelete) -> Result<()> {
        self.faults.pass("delete", path, self.inner.delete(path, args)).await
    }

    async fn close(&mut self) -> Result<()> {
        self.inner.close().await
    }
}
