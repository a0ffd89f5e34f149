//! Our side: the renderer itself, on this thread, without the engine's caches and queues.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use bytes::Bytes;
use filestore_core::api::VARIANT_SIZES;
use filestore_core::domain::config::VariantConfig;
use filestore_core::variant::{Fit, Variant, VariantSize, render};
use rustix::time::{ClockId, clock_gettime};

use super::{Outcome, QUALITY, Times, Wanted};

/// One variant; no bytes if the picture passes through.
pub(crate) fn make(wanted: Wanted<'_>) -> Outcome<(Times, Option<Bytes>)> {
    let (times, made) = timed(|| variants(wanted.photo, &[(wanted.size, wanted.fit)]));
    Ok((times, made?.pop().and_then(webp)))
}

/// All seven sizes in one call, without those that pass through.
pub(crate) fn seven(photo: &Path, fit: Fit) -> Outcome<(Times, Vec<(VariantSize, Bytes)>)> {
    let sizes =
        VARIANT_SIZES.map(|size| (VariantSize::try_from(size).expect("an allowed size"), fit));
    let (times, made) = timed(|| variants(photo, &sizes));
    let made = made?
        .into_iter()
        .zip(sizes)
        .filter_map(|(variant, (size, _))| Some((size, webp(variant)?)));
    Ok((times, made.collect()))
}

/// By how much making `wanted` raises the process's peak of resident memory.
pub(crate) fn grown_kib(wanted: Wanted<'_>) -> Outcome<Option<u64>> {
    fs::write("/proc/self/clear_refs", "5")?;
    let before = peak()?;
    let made = variants(wanted.photo, &[(wanted.size, wanted.fit)])?.pop().and_then(webp);
    made.map(|_| peak().map(|after| after - before)).transpose()
}

/// From the path, as sharp does.
fn variants(photo: &Path, wanted: &[(VariantSize, Fit)]) -> Outcome<Vec<Variant>> {
    let mut config = VariantConfig::default();
    config.quality = QUALITY;
    Ok(render(&File::open(photo)?, wanted, &config)?)
}

/// The peak of one variant in a new process; nothing if the picture passes through.
pub(crate) fn peak_kib(wanted: Wanted<'_>) -> Outcome<Option<u64>> {
    let (size, fit) = (wanted.size.pixels().to_string(), fit_name(wanted.fit));
    let child = Command::new(std::env::current_exe()?)
        .arg("--peak")
        .arg(wanted.photo)
        .args([&size, fit])
        .output()?;
    let said = String::from_utf8_lossy(&child.stdout);
    match said.trim() {
        "passes through" => Ok(None),
        number => Ok(Some(
            number.parse().map_err(|_| String::from_utf8_lossy(&child.stderr).into_owned())?,
        )),
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

fn timed<T>(work: impl FnOnce() -> T) -> (Times, T) {
    let (cpu, start) = (processor_ms(), Instant::now());
    let result = work();
    let times =
        Times { wall_ms: start.elapsed().as_secs_f64() * 1e3, cpu_ms: processor_ms() - cpu };
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
