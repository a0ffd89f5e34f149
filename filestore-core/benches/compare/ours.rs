//! Our side: the engine with one thread and both caches off.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use bytes::Bytes;
use filestore_core::api::VARIANT_SIZES;
use filestore_core::domain::clock::Timestamp;
use filestore_core::domain::config::VariantConfig;
use filestore_core::domain::id::{FileId, Sha256};
use filestore_core::variant::{Fit, Variant, VariantEngine, VariantKey, VariantSize};
use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use super::{Outcome, QUALITY, Times, Wanted};

pub(crate) struct Engine {
    engine: VariantEngine,
    runtime: Runtime,
    _cache: TempDir,
}

impl Engine {
    pub(crate) fn open() -> Outcome<Self> {
        let cache = tempfile::tempdir()?;
        let config =
            VariantConfig { threads: 1, memory_cache_bytes: 0, quality: QUALITY, ..VariantConfig::default() };
        // A disk that never has room: nothing is written.
        let engine = VariantEngine::open_beside(cache.path(), config, || false)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { engine, runtime, _cache: cache })
    }

    /// One variant; no bytes if the picture passes through.
    pub(crate) fn make(&self, wanted: Wanted<'_>) -> Outcome<(Times, Option<Bytes>)> {
        let (times, variant) = timed(|| self.variant(wanted.photo, new_key(wanted.size, wanted.fit)));
        Ok((times, webp(variant?)))
    }

    /// All seven sizes; the sum of their bytes.
    pub(crate) fn seven(&self, photo: &Path, fit: Fit) -> Outcome<(Times, usize)> {
        let sizes = VARIANT_SIZES.map(|size| VariantSize::try_from(size).expect("an allowed size"));
        let (times, made) = timed(|| -> Outcome<usize> {
            sizes.into_iter().try_fold(0, |sum, size| {
                Ok(sum + webp(self.variant(photo, new_key(size, fit))?).map_or(0, |bytes| bytes.len()))
            })
        });
        Ok((times, made?))
    }

    /// By how much making `wanted` raises the process's peak of resident memory.
    pub(crate) fn grown_kib(&self, wanted: Wanted<'_>) -> Outcome<Option<u64>> {
        fs::write("/proc/self/clear_refs", "5")?;
        let before = peak()?;
        let made = webp(self.variant(wanted.photo, new_key(wanted.size, wanted.fit))?);
        made.map(|_| peak().map(|after| after - before)).transpose()
    }

    fn variant(&self, photo: &Path, key: VariantKey) -> Outcome<Variant> {
        let photo = photo.to_owned();
        let source = async move {
            File::open(photo).map_err(|e| filestore_core::Error::io("opening a photograph", e))
        };
        Ok(self.runtime.block_on(self.engine.get(key, source, || std::future::ready(true)))?)
    }
}

/// The peak of one variant in a new process; nothing if the picture passes through.
pub(crate) fn peak_kib(wanted: Wanted<'_>) -> Outcome<Option<u64>> {
    let (size, fit) = (wanted.size.pixels().to_string(), fit_name(wanted.fit));
    let child =
        Command::new(std::env::current_exe()?).arg("--peak").arg(wanted.photo).args([&size, fit]).output()?;
    let said = String::from_utf8_lossy(&child.stdout);
    match said.trim() {
        "passes through" => Ok(None),
        number => Ok(Some(number.parse().map_err(|_| String::from_utf8_lossy(&child.stderr).into_owned())?)),
    }
}

/// A fit as requests spell it, and sharp does too.
pub(crate) fn fit_name(fit: Fit) -> &'static str {
    match fit {
        Fit::Cover => "cover",
        Fit::Inside => "inside",
    }
}

fn webp(variant: Variant) -> Option<Bytes> {
    match variant {
        Variant::WebP(bytes) => Some(bytes),
        Variant::PassThrough { .. } => None,
    }
}

/// A key nobody asked for before: always made anew.
fn new_key(size: VariantSize, fit: Fit) -> VariantKey {
    VariantKey {
        organization_id: "1".parse().expect("an organization"),
        file_id: FileId::generate(Timestamp::now()),
        sha256: Sha256([0; 32]),
        size,
        fit,
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (Times, T) {
    let (cpu, start) = (processor_ms(), Instant::now());
    let result = work();
    let times = Times { wall_ms: start.elapsed().as_secs_f64() * 1e3, cpu_ms: processor_ms() - cpu };
    (times, result)
}

/// Processor time of all threads of this process so far.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a process's life")]
fn processor_ms() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 * 1e3 + used.tv_nsec as f64 / 1e6
}

/// Peak resident memory so far, in KiB.
fn peak() -> Outcome<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
