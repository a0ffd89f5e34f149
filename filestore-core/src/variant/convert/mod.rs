//! Converters: commands of the operator that make pictures from other files. A command turns a file into a
//! PNG or JPEG, which is then processed like any picture from a stranger.
//!
//! # Purpose
//! The commands are large programs that read files from strangers. `filestore-sandbox` runs each in its own
//! directory, with limits on time, memory and output. This module decides which command runs, how many run in
//! parallel, and for which organization. Every run ends with a picture or with one refusal, and does not
//! affect other requests.
//!
//! # Locking
//! All requests of an organization for one blob share one flight, for all sizes. Organizations share the
//! turns of each converter fairly (`variant/fair.rs`). A failure is remembered for a while, so that a slow
//! file rarely occupies its converter.
//!
//! Organizations share neither flights nor failures. Otherwise one organization would wait in the queue of
//! another, and would learn that the other has the same bytes.
//!
//! # How a file is converted
//! No decoder knows the bytes, but a configured command accepts their type. `job.rs` copies the blob into a
//! scratch directory, and runs the command in the sandbox. The sandbox's launcher is our own program
//! (`filestore_core::variants::launch`). The output is processed like any picture. A failure is one refusal,
//! which is remembered for five minutes.

#[cfg(feature = "converters")]
mod job;
#[cfg(not(feature = "converters"))]
#[path = "no_job.rs"]
mod job;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "converters")]
pub use filestore_sandbox::{LAUNCHER_ARGUMENT, launch};
use quick_cache::sync::Cache;
use tokio::time::Instant;

use self::job::Job;
use super::engine::flight::Flights;
use super::fair::{Turn, Turns};
use crate::domain::config::{ConverterConfig, VariantConfig};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::media;
use crate::domain::id::{OrganizationId, Sha256};
use crate::tasks;

/// The maximum number of files that wait for one converter. Further files get [`Busy`](ErrorKind::Busy).
const WAITING: usize = 32;
/// The maximum number of remembered failures, and for how long each is remembered.
const FAILURES: usize = 1024;
pub(super) const FAILURE_LASTS: Duration = Duration::from_mins(5);

/// The converters of a store.
pub(crate) struct Converters {
    list: Vec<Converter>,
    launcher: PathBuf,
    directory: PathBuf,
    flights: Flights<Conversion, Arc<File>>,
    failures: Cache<Conversion, (Instant, Error)>,
}

/// A blob of an organization, and the converter for it. The organization is a part of the key. Without the
/// organization in the key, the response time would reveal whether another organization has the same bytes.
/// Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Conversion {
    /// The request's organization.
    pub(crate) organization: OrganizationId,
    /// The blob's digest.
    pub(crate) sha256: Sha256,
    /// The index of the converter in the configuration.
    pub(crate) converter: usize,
}

struct Converter {
    config: ConverterConfig,
    turns: Turns,
}

/// Checks that this build can run the converters of `config`, as [`Converters::open`] does.
pub(crate) fn check(config: &VariantConfig) -> Result<()> {
    job::launcher(config).map(drop)
}

impl Converters {
    /// Prepares the converters of `config` with the working directory `directory`, and removes leftovers
    /// there. [`Unusable`](ErrorKind::Unusable) for converters without a launcher, or in a build without
    /// converters.
    pub(crate) fn open(directory: PathBuf, config: &VariantConfig) -> Result<Self> {
        let launcher = job::launcher(config)?;
        job::remove_tree(&directory)
            .map_err(|error| Error::io("emptying the directory of converters", error))?;

        Ok(Self {
            list: config.converters.iter().map(Converter::new).collect(),
            launcher,
            directory,
            flights: Flights::default(),
            failures: Cache::new(FAILURES),
        })
    }

    /// Returns the first converter that accepts the type: the type `sniffed` from the bytes, or else
    /// `mime_type`.
    pub(crate) fn of(&self, sniffed: Option<&str>, mime_type: &str) -> Option<usize> {
        let takes =
            |essence: &str| self.list.iter().position(|converter| converter.config.takes(essence));
        let named = media::essence(mime_type);
        match sniffed {
            None => takes(&named),
            Some(shown) if media::refines(shown, &named) => takes(&named).or_else(|| takes(shown)),
            Some(shown) => takes(shown),
        }
    }

    /// Converts a blob. `open` opens it when it has its turn. All requests of an organization for the blob
    /// wait for the same run.
    ///
    /// Returns [`ConversionFailed`](ErrorKind::ConversionFailed) if the run produces no picture,
    /// [`Busy`](ErrorKind::Busy) if too many files wait, or the error of `open`.
    pub(crate) async fn convert<O>(self: &Arc<Self>, key: Conversion, open: O) -> Result<File>
    where
        O: Future<Output = Result<File>> + Send + 'static,
    {
        if let Some((failed_at, error)) = self.failures.get(&key)
            && failed_at.elapsed() < FAILURE_LASTS
        {
            return Err(error);
        }

        let (converters, wanted) = (Arc::clone(self), key.clone());
        let work = || async move {
            let converted = converters.run(&wanted, open).await;
            if let Err(error) = &converted
                && error.kind() == ErrorKind::ConversionFailed
            {
                converters.failures.insert(wanted, (Instant::now(), error.clone()));
            }
            converted.map(Arc::new)
        };
        let picture = self.flights.join(key, work).await?;
        picture.try_clone().map_err(|error| Error::io("opening a converted picture", error))
    }

    async fn run(
        &self,
        wanted: &Conversion,
        open: impl Future<Output = Result<File>>,
    ) -> Result<File> {
        let converter = &self.list[wanted.converter];
        let turn = converter.turn(&wanted.organization).await?;
        let source = open.await?;

        let job = Job::new(&self.launcher, &converter.config);
        let outcome = job.run(self.directory.clone(), source).await;
        drop(turn);
        if let Err(error) = &outcome {
            let reason = std::error::Error::source(error).map(ToString::to_string);
            tracing::warn!(%error, reason, "a converter failed");
        }
        outcome
    }

    /// Describes the protections of the sandbox on this machine, for the log. `None` without converters.
    pub(crate) async fn isolation(&self) -> Option<String> {
        if self.list.is_empty() {
            return None;
        }
        let launcher = self.launcher.clone();
        tasks::blocking(move || job::walls(&launcher)).await.ok()
    }
}

impl Converter {
    fn new(config: &ConverterConfig) -> Self {
        Self { turns: Turns::new(config.at_once.max(1), WAITING), config: config.clone() }
    }

    /// Waits for a turn, at most as long as two runs can take: a run that began just before, and the opening
    /// of its file.
    async fn turn(&self, organization: &OrganizationId) -> Result<Turn> {
        let patience = self.config.timeout.saturating_mul(2);
        self.turns.turn(organization, patience).await.ok_or_else(busy)
    }
}

fn busy() -> Error {
    Error::new(ErrorKind::Busy, "too many files are being converted").with_retry_after_secs(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_of_a_document_in_an_archive_finds_its_converter() {
        const DOCUMENT: &str = "application/vnd.oasis.opendocument.graphics";
        let types = [DOCUMENT, "application/zip", "application/pdf"];
        let converters = Converters {
            list: types.map(|one| Converter::new(&ConverterConfig::new([one], ["x"]))).into(),
            launcher: PathBuf::new(),
            directory: PathBuf::new(),
            flights: Flights::default(),
            failures: Cache::new(FAILURES),
        };

        for (sniffed, mime_type, found) in [
            (Some("application/zip"), DOCUMENT, Some(0)),
            (Some("application/zip"), "application/java-archive", Some(1)),
            (Some("application/zip"), "application/pdf", Some(1)),
            (Some("application/pdf"), DOCUMENT, Some(2)),
            (Some("text/html"), "application/pdf", None),
            (None, "application/pdf", Some(2)),
        ] {
            assert_eq!(converters.of(sniffed, mime_type), found, "{sniffed:?} {mime_type}");
        }
    }

    #[test]
    fn equal_bytes_of_two_organizations_share_neither_runs_nor_failures() {
        let of = |organization: &str| Conversion {
            organization: organization.parse().unwrap(),
            sha256: Sha256([7; 32]),
            converter: 0,
        };
        assert_eq!(of("7"), of("7"));
        assert_ne!(of("7"), of("8"));
    }
}
