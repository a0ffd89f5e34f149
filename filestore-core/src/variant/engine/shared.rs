//! The parts of an engine that all its handles share, and the way onto its threads.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::eager_queue::EagerQueue;
use super::flight::Flights;
use super::limits::{Limits, busy};
use super::pool::Pool;
use super::served::Served;
use super::sketch::Sketching;
use crate::domain::config::VariantConfig;
use crate::domain::error::{Error, Result};
use crate::domain::variant::{Fit, VariantSize};
use crate::tasks;
use crate::variant::cache::{Caches, HasRoom};
use crate::variant::key::KeyDigest;
use crate::variant::pipeline::image_file::Deadline;
use crate::variant::pipeline::mosaic;
use crate::variant::pipeline::refusal::{corrupt, too_slow};
use crate::variant::pipeline::render::{Rendering, Small, assess};
use crate::variant::{Sheet, Variant};

pub(super) struct Shared {
    pub(super) config: VariantConfig,
    pub(super) caches: Caches,
    pub(super) flights: Flights<KeyDigest, Variant>,
    pub(super) sheets: Flights<KeyDigest, Arc<Sheet>>,
    pub(super) limits: Limits,
    pub(super) pool: Pool,
    pub(super) eager: EagerQueue,
    pub(super) sketching: Sketching,
    pub(super) served: Served,
}

/// The kind of work that a thread does: it says whose fault an end without a report is.
#[derive(Clone, Copy)]
pub(super) enum Work {
    /// A picture of a client's, which may be made to hurt its decoder.
    Picture,
    /// A sheet of variants that were all made here.
    Sheet,
}

impl Work {
    fn panicked(self) -> Error {
        match self {
            Self::Picture => corrupt("the decoder panicked"),
            Self::Sheet => Error::internal("putting a sheet together", "the thread panicked"),
        }
    }

    fn too_slow(self) -> Error {
        match self {
            Self::Picture => too_slow(),
            Self::Sheet => mosaic::too_slow(),
        }
    }
}

impl Shared {
    /// Opens the caches in `cache_dir` and starts the threads.
    pub(super) fn open(cache_dir: &Path, config: VariantConfig, has_room: HasRoom) -> Result<Self> {
        let threads = match config.threads {
            0 => thread::available_parallelism().map_or(1, usize::from),
            given => given,
        };
        let places = Limits::places(threads, config.queue);

        Ok(Self {
            caches: Caches::open(cache_dir, &config, has_room)?,
            flights: Flights::default(),
            sheets: Flights::default(),
            limits: Limits::new(places, config.decode_memory_bytes, threads),
            pool: Pool::start(threads, places)?,
            eager: EagerQueue::default(),
            sketching: Sketching::default(),
            served: Served::default(),
            config,
        })
    }

    /// Reads the header of `file` and checks the limits, on a thread that may block.
    pub(super) async fn assess(
        &self,
        file: File,
        wanted: Vec<(VariantSize, Fit)>,
        small: Small,
    ) -> Result<(Rendering, File)> {
        let config = self.config.clone();
        let assessed = tasks::blocking(move || {
            assess(&file, &wanted, small, &config).map(|rendering| (rendering, file))
        });
        assessed.await.map_err(|error| corrupt(error.to_string()))?
    }

    /// Runs `job` on the pool and waits for its report. The job releases its permits when it has
    /// ended, not when its caller stops waiting; it may go on after its report.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: Work,
        job: impl FnOnce(Deadline, oneshot::Sender<Result<T>>) + Send + 'static,
    ) -> Result<T> {
        let deadline = self.config.deadline;
        let (start, started) = oneshot::channel();
        let (report, outcome) = oneshot::channel();
        self.pool.submit(move || {
            // Nobody waits any more for a job that was queued for too long.
            if start.send(()).is_ok() {
                job(Deadline::after(deadline), report);
            }
        })?;

        let in_time = timeout(deadline, started).await.map_err(|_| busy())?;
        in_time.map_err(|error| Error::internal("waiting for a variant thread", error))?;
        match timeout(deadline, outcome).await {
            Ok(Ok(rendered)) => rendered,
            // The sender went without a word.
            Ok(Err(_)) => Err(work.panicked()),
            Err(_) => Err(work.too_slow()),
        }
    }
}
