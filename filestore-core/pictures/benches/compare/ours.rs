//! Our side: the renderer itself, on this thread.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use bytes::Bytes;
use filestore_pictures::{Fit, Rendered, Settings, Wanted, render};
use rustix::time::{ClockId, clock_gettime};

use super::{Asked, Outcome, QUALITY, SIDES, Times};

/// One variant; no bytes if the picture passes through.
pub(crate) fn make(wanted: Asked<'_>) -> Outcome<(Times, Option<Bytes>)> {
    let (times, made) = timed(|| variants(wanted.photo, &[Wanted::new(wanted.side, wanted.fit)]));
    Ok((times, made?.pop().and_then(webp)))
}

/// All seven sizes in one call, without those that pass through.
pub(crate) fn seven(photo: &Path, fit: Fit) -> Outcome<(Times, Vec<(u32, Bytes)>)> {
    let sizes = SIDES.map(|side| Wanted::new(side, fit));
    let (times, made) = timed(|| variants(photo, &sizes));
    let made = made?
        .into_iter()
        .zip(sizes)
        .filter_map(|(variant, wanted)| Some((wanted.side, webp(variant)?)));
    Ok((times, made.collect()))
}

/// By how much making `wanted` raises the process's peak of resident memory.
pub(crate) fn grown_kib(wanted: Asked<'_>) -> Outcome<Option<u64>> {
    fs::write("/proc/self/clear_refs", "5")?;
    let before = peak()?;
    let made =
        variants(wanted.photo, &[Wanted::new(wanted.side, wanted.fit)])?.pop().and_then(webp);
    made.map(|_| peak().map(|after| after - before)).transpose()
}

/// From the path, as sharp does.
fn variants(photo: &Path, wanted: &[Wanted]) -> Outcome<Vec<Rendered>> {
    let mut settings = Settings::default();
    settings.quality = QUALITY;
    Ok(render(&File::open(photo)?, wanted, &settings)?)
}

/// The peak of one variant in a new process; nothing if the picture passes through.
pub(crate) fn peak_kib(wanted: Asked<'_>) -> Outcome<Option<u64>> {
    let (size, fit) = (wanted.side.to_string(), fit_name(wanted.fit));
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

fn webp(variant: Rendered) -> Option<Bytes> {
    match variant {
        Rendered::WebP(bytes) => Some(bytes),
        Rendered::PassThrough { .. } => None,
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
