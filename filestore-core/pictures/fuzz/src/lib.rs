//! The check of every fuzz target. The crate must answer any picture with a smaller picture or a refusal,
//! within the memory limit and without a panic.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use filestore_pictures::{Error, ErrorKind, Rendered, Settings, Wanted, animate, probe, render};
use rustix::fs::{MemfdFlags, memfd_create};

/// The maximum number of pixels. With this limit, a picture takes milliseconds.
const MAX_PIXELS: u64 = 512 * 512;
/// The memory limit of a rendering. The limit includes 16 MiB for data other than pixels, or 64 MiB in a
/// TIFF.
const MEMORY_BYTES: usize = 80 << 20;
/// The extra memory for the fuzzer's own file and the results.
const SLACK_BYTES: usize = 1 << 20;

/// Reads the header alone, without limits on the picture's size.
pub fn header(bytes: &[u8]) {
    let file = in_memory(bytes);
    let peak = peak_of(|| {
        if let Ok(info) = probe(&file) {
            assert!(info.size.width > 0 && info.size.height > 0, "a side of 0 pixels");
        }
    });
    assert!(peak < SLACK_BYTES, "reading a header took {peak} bytes");
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    let limits = &mut settings.limits;
    limits.max_pixels = MAX_PIXELS;
    limits.max_side = 8192;
    limits.memory_bytes = MEMORY_BYTES as u64;
    limits.deadline = Duration::from_secs(5);
    limits.animation.max_frames = 20;
    limits.animation.max_pixels = 4 * MAX_PIXELS;
    limits.animation.max_bytes = 1 << 20;
    settings
}

/// Makes an animation of `bytes`.
pub fn moving(bytes: &[u8]) {
    let settings = settings();
    let file = in_memory(bytes);
    let peak = peak_of(|| match animate(&file, Wanted::inside(200), &settings) {
        Ok(made) => check(&made),
        Err(error) => check_refusal(&error),
    });
    assert!(peak <= MEMORY_BYTES + SLACK_BYTES, "an animation took {peak} bytes");
}

/// Makes two pictures of `bytes` from one decode.
pub fn variants(bytes: &[u8]) {
    let settings = settings();
    let file = in_memory(bytes);
    let wanted = [Wanted::cover(200), Wanted::inside(200)];
    let peak = peak_of(|| match render(&file, &wanted, &settings) {
        Ok(made) => made.iter().for_each(check),
        Err(error) => check_refusal(&error),
    });
    assert!(peak <= MEMORY_BYTES + SLACK_BYTES, "a rendering took {peak} bytes");
}

/// Fails for an error without a cause in the picture.
fn check_refusal(error: &Error) {
    use ErrorKind::{Corrupt, NotAnImage, TooLarge, TooSlow, Unsupported};

    let is_refusal =
        matches!(error.kind(), NotAnImage | Unsupported | Corrupt | TooLarge | TooSlow);
    assert!(is_refusal, "{error:?}");
}

/// Returns a PNG with the right checksum in each chunk. Most changes of a fuzzer break a checksum, and the
/// decoder would stop there.
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

fn check(made: &Rendered) {
    match made {
        Rendered::WebP(bytes) => assert!(bytes.starts_with(b"RIFF") && &bytes[8..12] == b"WEBP"),
        Rendered::PassThrough { mime } => {
            assert!(mime.starts_with("image/") && *mime != "image/svg+xml")
        }
    }
}

/// Makes a file that never touches a disk.
fn in_memory(bytes: &[u8]) -> File {
    let file = File::from(memfd_create("picture", MemfdFlags::CLOEXEC).expect("a file in memory"));
    file.write_all_at(bytes, 0).expect("writing to memory");
    file
}

/// The allocator that counts memory. The memory of libwebp is not counted, because this C library sees only
/// our own pixels.
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

/// Measures the peak memory of `work` in bytes, without memory from before the call.
fn peak_of(work: impl FnOnce()) -> usize {
    let before = NOW.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    work();
    PEAK.load(Ordering::Relaxed) - before
}
