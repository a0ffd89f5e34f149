//! The parts of an engine that all its handles share, and the submission of work to its threads.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::eager_queue::EagerQueue;
use super::flight::Flights;
use super::pool::{Held, Kind, Place, Pool, busy};
use super::served::Served;
use super::sketch::Sketching;
use crate::domain::config::VariantConfig;
use crate::domain::error::{Error, Result};
use crate::domain::file::variant::{Fit, VariantSize};
use crate::tasks;
use crate::variant::cache::{Caches, HasRoom};
use crate::variant::key::KeyDigest;
use crate::variant::pictures::{
    Deadline, Rendering, Small, assess, corrupt, sheet_too_slow, too_slow,
};
use crate::variant::{Sheet, Variant};

/// The maximum number of waiting requests in any configuration.
const MAX_QUEUE: usize = 1 << 16;
/// The maximum wait of a request until a thread begins with it, in deadlines: one for its turn, and one for
/// the memory of the tasks before it.
const PATIENCE: u32 = 2;

pub(super) struct Shared {
    pub(super) config: VariantConfig,
    pub(super) caches: Caches,
    pub(super) flights: Flights<KeyDigest, Variant>,
    pub(super) sheets: Flights<KeyDigest, Arc<Sheet>>,
    pub(super) pool: Pool,
    pub(super) eager: EagerQueue,
    pub(super) sketching: Sketching,
    pub(super) served: Served,
}

/// The kind of a thread's work. The kind decides who is at fault if the work ends without a report.
#[derive(Clone, Copy)]
pub(super) enum Work {
    /// A client's picture, which can be made to attack its decoder.
    Picture,
    /// All frames of such a picture.
    Animation,
    /// A sheet of variants that this engine made.
    Sheet,
}

impl Work {
    fn kind(self) -> Kind {
        match self {
            Self::Picture | Self::Sheet => Kind::Still,
            Self::Animation => Kind::Animation,
        }
    }

    fn panicked(self) -> Error {
        match self {
            Self::Picture | Self::Animation => corrupt("the decoder panicked"),
            Self::Sheet => Error::internal("putting a sheet together", "the thread panicked"),
        }
    }

    fn too_slow(self) -> Error {
        match self {
            Self::Picture | Self::Animation => too_slow(),
            Self::Sheet => sheet_too_slow(),
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
        let queue = config.queue.min(MAX_QUEUE);

        Ok(Self {
            caches: Caches::open(cache_dir, &config, has_room)?,
            flights: Flights::default(),
            sheets: Flights::default(),
            pool: Pool::start(threads, queue, config.decode_memory_bytes)?,
            eager: EagerQueue::default(),
            sketching: Sketching::default(),
            served: Served::default(),
            config,
        })
    }

    /// Reads the header of `file` and checks the limits, on a thread that can block.
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

    /// Runs `job` on the pool when a thread and `bytes` of memory are free, and waits for its report. The job
    /// releases its resources when it ends, not when its caller stops waiting. The job can continue after its
    /// report.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: Work,
        place: Place,
        bytes: u64,
        job: impl FnOnce(Deadline, Held, oneshot::Sender<Result<T>>) + Send + 'static,
    ) -> Result<T> {
        let deadline = self.config.deadline;
        let (start, started) = oneshot::channel();
        let (report, outcome) = oneshot::channel();
        place.submit(work.kind(), bytes, move |held| {
            // Nobody waits any more for a job that was queued for too long.
            if start.send(()).is_ok() {
                job(Deadline::after(deadline), held, report);
            }
        });

        let in_time = timeout(deadline.saturating_mul(PATIENCE), started).await;
        // The job was dropped: its place went to another organization.
        in_time.map_err(|_| busy())?.map_err(|_| busy())?;
        match timeout(deadline, outcome).await {
            Ok(Ok(rendered)) => rendered,
            // The sender went without a word.
            Ok(Err(_)) => Err(work.panicked()),
            Err(_) => Err(work.too_slow()),
        }
    }
}
