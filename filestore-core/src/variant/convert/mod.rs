//! Pictures of what is no picture: a command of the operator's turns a file into a PNG or JPEG, which is
//! then a picture from a stranger like any other.
//!
//! # Purpose
//! The commands are large programs that read files of strangers. Each runs in a directory of its own,
//! through a launcher (`launcher`) that takes from it what it does not need, with limits of time, memory
//! and output, and at most so many at once. Whatever it does ends in a picture or in one refusal, and
//! nobody else notices.
//!
//! # Locking
//! One flight for each blob, whichever sizes are asked for; one semaphore for each converter. A failure
//! is remembered for a while, so that a file that keeps its converter busy does so rarely.
//!
//! # The way of a file
//! No decoder knows the bytes, but a command of the configuration takes their type.
//! `convert/job.rs` copies the blob into a directory of its own, and starts the launcher, which
//! is our program again (`filestore_core::variants::launch`). It takes from its process what the command
//! does not need, and becomes the command. The output goes to the pipeline like any picture. A
//! failure is one refusal, remembered for five minutes; at the deadline the whole process group
//! is killed.

mod job;
mod watch;
#[cfg(target_os = "linux")]
mod launcher;
#[cfg(target_os = "linux")]
mod sandbox;

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use quick_cache::sync::Cache;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use self::job::{Command, Job};
use self::watch::remove_tree;
use super::engine::flight::Flights;
use crate::domain::config::{ConverterConfig, VariantConfig};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::id::Sha256;
use crate::tasks;

/// The argument that makes a program of ours the launcher of a converter.
pub const LAUNCHER_ARGUMENT: &str = "sandbox-exec";

/// The files that may wait for one converter; more are [`Busy`](ErrorKind::Busy).
const WAITING: usize = 32;
/// The failures remembered at most, and how long each.
const FAILURES: usize = 1024;
pub(super) const FAILURE_LASTS: Duration = Duration::from_mins(5);

/// Runs as the launcher of a converter, if the program was started as one: with
/// [`LAUNCHER_ARGUMENT`] as its first argument. `None` otherwise. To be called before a program starts
/// any thread.
pub fn launch(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != LAUNCHER_ARGUMENT {
        return None;
    }

    #[cfg(target_os = "linux")]
    return Some(launcher::run(arguments.collect()));
    #[cfg(not(target_os = "linux"))]
    {
        eprintln!("converters run on Linux only");
        Some(ExitCode::from(job::NOT_ISOLATED))
    }
}

/// The converters of a store.
pub(crate) struct Converters {
    list: Vec<Converter>,
    launcher: PathBuf,
    directory: PathBuf,
    flights: Flights<(Sha256, usize), Arc<File>>,
    failures: Cache<(Sha256, usize), (Instant, Error)>,
}

struct Converter {
    config: ConverterConfig,
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
}

impl Converters {
    /// Prepares the converters of `config`, which work in `directory`. What is left there is removed.
    /// [`Unusable`](ErrorKind::Unusable) for converters without a launcher.
    pub(crate) fn open(directory: PathBuf, config: &VariantConfig) -> Result<Self> {
        let launcher = match &config.launcher {
            Some(launcher) => launcher.clone(),
            None if config.converters.is_empty() => PathBuf::new(),
            None => {
                let message = "converters need a launcher: a program that calls filestore_core::variants::launch";
                return Err(Error::new(ErrorKind::Unusable, message));
            }
        };
        remove_tree(&directory)
            .map_err(|error| Error::io("emptying the directory of converters", error))?;

        Ok(Self {
            list: config.converters.iter().map(Converter::new).collect(),
            launcher,
            directory,
            flights: Flights::default(),
            failures: Cache::new(FAILURES),
        })
    }

    /// Finds the converter for bytes that show `sniffed`, or that show nothing and are called
    /// `mime_type`. The first that takes the type counts.
    pub(crate) fn of(&self, sniffed: Option<&str>, mime_type: &str) -> Option<usize> {
        let shown = sniffed.unwrap_or(mime_type);
        let essence = shown.split(';').next().unwrap_or_default().trim();
        self.list.iter().position(|converter| converter.config.takes(essence))
    }

    /// Converts the blob with this digest; `open` opens it when its turn has come. All who ask for one
    /// blob wait for one run.
    ///
    /// [`ConversionFailed`](ErrorKind::ConversionFailed) if no picture comes of it,
    /// [`Busy`](ErrorKind::Busy) if too many wait, the error of `open`.
    pub(crate) async fn convert<O>(
        self: &Arc<Self>,
        converter: usize,
        sha256: Sha256,
        open: O,
    ) -> Result<File>
    where
        O: Future<Output = Result<File>> + Send + 'static,
    {
        let key = (sha256, converter);
        if let Some((failed_at, error)) = self.failures.get(&key)
            && failed_at.elapsed() < FAILURE_LASTS
        {
            return Err(error);
        }

        let converters = Arc::clone(self);
        let work = || async move {
            let converted = converters.run(converter, open).await;
            if let Err(error) = &converted
                && error.kind() == ErrorKind::ConversionFailed
            {
                converters.failures.insert(key, (Instant::now(), error.clone()));
            }
            converted.map(Arc::new)
        };
        let picture = self.flights.join(key, work).await?;
        picture.try_clone().map_err(|error| Error::io("opening a converted picture", error))
    }

    async fn run(
        &self,
        converter: usize,
        open: impl Future<Output = Result<File>>,
    ) -> Result<File> {
        let converter = &self.list[converter];
        let turn = converter.turn().await?;
        let source = open.await?;

        let job = self.begin(&converter.config, source).await?;
        let outcome = job.run().await;
        drop(turn);
        if let Err(error) = &outcome {
            let reason = std::error::Error::source(error).map(ToString::to_string);
            tracing::warn!(%error, reason, "a converter failed");
        }
        outcome
    }

    /// Makes the directory of a run, with the source in it.
    async fn begin(&self, config: &ConverterConfig, source: File) -> Result<Job> {
        let (config, directory) = (config.clone(), self.directory.clone());
        let command = Command { launcher: self.launcher.clone(), config };
        tasks::blocking(move || Job::begin(&directory, command, source))
            .await
            .map_err(|error| Error::internal("beginning a conversion", error))?
    }

    /// Says what the launcher can take from converters on this machine, for the log; `None` without
    /// converters.
    pub(crate) async fn isolation(&self) -> Option<String> {
        if self.list.is_empty() {
            return None;
        }
        let launcher = self.launcher.clone();
        tasks::blocking(move || probe(&launcher)).await.ok()
    }
}

impl Converter {
    fn new(config: &ConverterConfig) -> Self {
        Self {
            turns: Arc::new(Semaphore::new(config.at_once.max(1))),
            config: config.clone(),
            waiting: AtomicUsize::new(0),
        }
    }

    /// Waits for a turn, but no longer than one run may take.
    async fn turn(&self) -> Result<OwnedSemaphorePermit> {
        if self.waiting.fetch_add(1, Ordering::Relaxed) >= WAITING {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(busy());
        }

        let turn = timeout(self.config.timeout, Arc::clone(&self.turns).acquire_owned()).await;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        turn.map_err(|_| busy())?.map_err(|error| Error::internal("waiting for a converter", error))
    }
}

fn busy() -> Error {
    Error::new(ErrorKind::Busy, "too many files are being converted").with_retry_after_secs(2)
}

/// Asks the launcher what it can do.
fn probe(launcher: &Path) -> String {
    let asked = std::process::Command::new(launcher).args([LAUNCHER_ARGUMENT, "--probe"]).output();
    match asked {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(error) => format!("the launcher does not start: {error}"),
    }
}
