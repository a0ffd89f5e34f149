//! The check of every target: a picture from a stranger is answered with a variant or with one of
//! three refusals, within its memory, and never with a panic.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use filestore_core::ErrorKind;
use filestore_core::domain::config::VariantConfig;
use filestore_core::variant::{Fit, Variant, VariantSize, animate, probe, render};
use rustix::fs::{MemfdFlags, memfd_create};

/// Small enough that a picture takes milliseconds.
const MAX_PIXELS: u64 = 512 * 512;
/// The memory that a rendering is told to keep to: 16 MiB of it are for things besides pixels, 64 in
/// a TIFF.
const MEMORY_BYTES: usize = 80 << 20;
/// The memory that the fuzzer's own file and the results may take besides.
const SLACK_BYTES: usize = 1 << 20;

/// Reads the header alone, without limits on the picture's size.
pub fn header(bytes: &[u8]) {
    let file = in_memory(bytes);
    let peak = peak_of(|| {
        if let Some(size) = probe(&file) {
            assert!(size.width > 0 && size.height > 0, "a side of 0 pixels");
        }
    });
    assert!(peak < SLACK_BYTES, "reading a header took {peak} bytes");
}

fn limits() -> VariantConfig {
    let mut config = VariantConfig::default();
    config.max_pixels = MAX_PIXELS;
    config.max_side = 8192;
    config.decode_memory_bytes = MEMORY_BYTES as u64;
    config.deadline = Duration::from_secs(5);
    config.animation.max_frames = 20;
    config.animation.max_pixels = 4 * MAX_PIXELS;
    config.animation.max_bytes = 1 << 20;
    config
}

/// Makes the animated variant of `bytes`.
pub fn moving(bytes: &[u8]) {
    let config = limits();
    let size = VariantSize::try_from(200).expect("an allowed size");
    let file = in_memory(bytes);
    let peak = peak_of(|| match animate(&file, size, Fit::Inside, &config) {
        Ok(variant) => check(&variant),
        Err(error) => assert!(
            matches!(
                error.kind(),
                ErrorKind::NotAnImage | ErrorKind::CorruptImage | ErrorKind::ImageTooLarge
            ),
            "{error:?}"
        ),
    });
    assert!(peak <= MEMORY_BYTES + SLACK_BYTES, "an animated variant took {peak} bytes");
}

/// Makes two variants of `bytes` from one decode.
pub fn variants(bytes: &[u8]) {
    let config = limits();
    let size = VariantSize::try_from(200).expect("an allowed size");
    let file = in_memory(bytes);
    let peak = peak_of(|| match render(&file, &[(size, Fit::Cover), (size, Fit::Inside)], &config) {
        Ok(variants) => variants.iter().for_each(check),
        Err(error) => assert!(
            matches!(
                error.kind(),
                ErrorKind::NotAnImage | ErrorKind::CorruptImage | ErrorKind::ImageTooLarge
            ),
            "{error:?}"
        ),
    });
    assert!(peak <= MEMORY_BYTES + SLACK_BYTES, "a rendering took {peak} bytes");
}

/// Returns a PNG with the right checksum in each chunk: most changes of a fuzzer break one, and the decoder
/// would look no further.
pub fn with_checksums(png: &[u8]) -> Vec<u8> {
    let mut mended = png.to_vec();
    let mut at = 8;
    while let Some(length) = mended.get(at..at + 4) {
        let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
        let end = (at + 8).saturating_add(length);
        let Some(named) = mended.get(at + 4..end) else { break };

        let checksum = crc32fast::hash(named).to_be_bytes();
        let Some(stored) = mended.get_mut(end..end.saturating_add(4)) else { break };
        stored.copy_from_slice(&checksum);
        at = end + 4;
    }
    mended
}

fn check(variant: &Variant) {
    match variant {
        Variant::WebP(bytes) => assert!(bytes.starts_with(b"RIFF") && &bytes[8..12] == b"WEBP"),
        Variant::PassThrough { mime } => assert!(mime.starts_with("image/") && *mime != "image/svg+xml"),
    }
}

/// Makes a file that never touches a disk.
fn in_memory(bytes: &[u8]) -> File {
    let file = File::from(memfd_create("picture", MemfdFlags::CLOEXEC).expect("a file in memory"));
    file.write_all_at(bytes, 0).expect("writing to memory");
    file
}

/// The allocator that counts. libwebp, which is C and only sees our own pixels, is not counted.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grow(size);
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn grow(bytes: usize) {
    let now = NOW.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(now, Ordering::Relaxed);
}

/// Measures the most bytes that `work` held at once, besides those held before.
fn peak_of(work: impl FnOnce()) -> usize {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    work();
    PEAK.load(Ordering::Relaxed) - before
}
