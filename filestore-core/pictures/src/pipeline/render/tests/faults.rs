//! A disk that fails anywhere in a file. A failed read is never taken for the end of a file or for metadata
//! that is missing: the result is an error, or exactly the result of a sound disk.

use std::cell::Cell;
use std::fmt::Debug;
use std::io;

use super::*;
use crate::source::Source;
use crate::{animate, placeholder};

/// The error code of a failing disk.
const EIO: i32 = 5;

/// A file whose bytes from a position on cannot be read.
struct Faulty<'a> {
    bytes: &'a [u8],
    from: u64,
    /// The number of reads that still fail.
    failures: Cell<u32>,
    has_failed: Cell<bool>,
}

impl<'a> Faulty<'a> {
    fn new(bytes: &'a [u8], from: usize, failures: u32) -> Self {
        let from = from as u64;
        Self { bytes, from, failures: Cell::new(failures), has_failed: Cell::new(false) }
    }
}

impl Source for Faulty<'_> {
    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let left = self.from.saturating_sub(position);
        if self.failures.get() == 0 || left >= buffer.len() as u64 {
            return self.bytes.read_at(buffer, position);
        }
        if left == 0 && position < self.bytes.len() as u64 {
            self.failures.set(self.failures.get() - 1);
            self.has_failed.set(true);
            return Err(io::Error::from_raw_os_error(EIO));
        }
        let before = usize::try_from(left).unwrap().min(buffer.len());
        self.bytes.read_at(&mut buffer[..before], position)
    }
}

const WIDTH: u32 = 44;
const HEIGHT: u32 = 36;

/// Small files of all formats, with what a fault could hide: an orientation, a profile, a frame that is
/// larger than its screen, tables, frames.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let rgb = quarters(WIDTH, HEIGHT, DISPLAYED);
    let profile = swapping_profile();
    let exif = exif(6);
    let of_png = |set: &dyn Fn(&mut png::Info<'_>)| {
        png(WIDTH, HEIGHT, ColorType::Rgb, BitDepth::Eight, &rgb, set)
    };
    let turned_png = with_chunk(&of_png(&|_| {}), *b"eXIf", &exif[6..]);
    let profiled_png = of_png(&|info| info.icc_profile = Some(swapping_profile().into()));
    let turned_jpeg = with_segment(&jpeg(WIDTH, HEIGHT, &rgb), 0xE1, &exif);
    let mut screen_too_small = encoded(WIDTH, HEIGHT, &rgb, ImageFormat::Gif);
    screen_too_small[6] = 10;
    let steps = [RED, BLUE, GREEN].map(|[r, g, b]| Step::flat(0, 0, WIDTH, HEIGHT, [r, g, b, 255]));
    let apart = [9, 9, 9, 255].repeat((WIDTH * HEIGHT) as usize);
    let (across, down) = (WIDTH.try_into().unwrap(), HEIGHT.try_into().unwrap());
    let palette = [[0, 0, 0, 0], [30, 30, 220, 0]].concat().repeat(8);
    let colors = Tiff::new((WIDTH, HEIGHT), 2, 3, &rgb).with(274, 3, &[6]);
    let strips = |compression, store: fn(&[u8]) -> Vec<u8>| {
        colors.clone().in_strips(8, 3 * WIDTH as usize, compression, store).write()
    };
    vec![
        ("JPEG", turned_jpeg.clone()),
        ("JPEG with a profile", jpeg_with_profile(&turned_jpeg, &profile)),
        ("PNG", turned_png),
        ("PNG with a profile", profiled_png),
        ("GIF", screen_too_small),
        ("animated GIF", moving_gif(across, down, &steps, None)),
        ("APNG", moving_png(WIDTH, HEIGHT, &steps, 0, None)),
        ("APNG with a hidden picture", moving_png(WIDTH, HEIGHT, &steps, 0, Some(&apart))),
        ("lossless WebP", webp(WIDTH, HEIGHT, &rgb, &exif[6..])),
        ("lossy WebP", {
            let lossy = ::webp::Encoder::from_rgb(&rgb, WIDTH, HEIGHT).encode(90.0);
            webp_with_profile(&lossy, (WIDTH, HEIGHT), &profile)
        }),
        ("animated WebP", moving_webp(WIDTH, HEIGHT, &steps, 0, Coding::Lossless)),
        ("BMP", bmp(WIDTH, 36, 4, 0, &palette, &[0x11; 24 * 36])),
        ("BMP with a profile", bmp_with_profile((WIDTH, HEIGHT), &rgb, &profile)),
        ("TIFF", strips(1, <[u8]>::to_vec)),
        ("TIFF, LZW", strips(5, lzw_literals)),
        ("TIFF, Deflate", strips(8, zlib)),
        ("TIFF with a profile", colors.clone().with_bytes(34_675, &profile).write()),
    ]
}

/// Compares the result of `work` with that of a sound disk, for faults at all the positions.
fn assert_faults_are_told<T: PartialEq + Debug>(
    what: &str,
    bytes: &[u8],
    positions: impl Iterator<Item = usize>,
    work: impl Fn(&dyn Source) -> Result<T>,
) {
    let sound = work(&bytes).unwrap();
    for (from, failures) in positions.flat_map(|from| [(from, 1), (from, u32::MAX)]) {
        let faulty = Faulty::new(bytes, from, failures);
        let at = format!("{what}, {failures} faults at {from}");
        match work(&faulty) {
            Ok(made) => assert!(!faulty.has_failed.get() && made == sound, "{at}: {made:?}"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Io, "{at}: {error:?}");
                let source = error.into_source().unwrap().downcast::<io::Error>().unwrap();
                assert_eq!(source.raw_os_error(), Some(EIO), "{at}");
            }
        }
    }
}

/// Each position in the headers, and some of the others.
fn positions(bytes: &[u8]) -> impl Iterator<Item = usize> + use<> {
    let length = bytes.len();
    (0..length.min(200)).chain((200..length).step_by(37)).chain([length - 1])
}

#[test]
fn a_fault_of_the_disk_never_changes_the_size_or_the_orientation_in_a_header() {
    for (what, bytes) in files() {
        // Metadata of a WebP and the directory of a TIFF are at the end.
        let all = 0..bytes.len();
        assert_faults_are_told(what, &bytes, all, |source| probe(source));
    }
}

#[test]
fn a_fault_of_the_disk_never_changes_a_picture() {
    let settings = unhurried();
    for (what, bytes) in files() {
        assert_faults_are_told(what, &bytes, positions(&bytes), |source| {
            thumbnail(source, Wanted::inside(20), &settings)
        });
    }
}

#[test]
fn a_fault_of_the_disk_never_changes_a_placeholder() {
    let settings = unhurried();
    for (what, bytes) in files() {
        assert_faults_are_told(what, &bytes, positions(&bytes), |source| {
            placeholder(source, &settings)
        });
    }
}

#[test]
fn a_fault_of_the_disk_never_ends_an_animation() {
    let settings = unhurried();
    for (what, bytes) in files() {
        assert_faults_are_told(what, &bytes, positions(&bytes), |source| {
            animate(source, Wanted::inside(20), &settings)
        });
    }
}
