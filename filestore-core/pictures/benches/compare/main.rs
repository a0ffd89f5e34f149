//! The variant engine beside sharp (npm, libvips), on photographs of the user's own: time, bytes,
//! likeness and peak memory, in one run.
//!
//! `filestore-core/pictures/benches/compare/run PHOTOGRAPHS_DIR [options]` installs sharp and dssim where it is told to or in
//! a temporary directory, and runs this:
//!
//! | option | meaning |
//! |---|---|
//! | `--sizes 200,400,1000` | the sizes made alone |
//! | `--fits cover,inside` | the fits |
//! | `--rounds 7` | turns; the least time of them counts; 0 compares the pictures alone |
//! | `--parts single,seven,peak` | one variant, all seven sizes, peak memory |
//! | `--formats original,webp,lossless,png,filtered,palette,gif,tiff` | the formats that photographs are converted to for the first part |
//! | `--likeness dssim` | `none` leaves the likeness out |
//! | `--server target/release/filestore-server` | the first part over HTTP, one request at a time, each of a file just uploaded |
//! | `--sharp-threads 1` | the threads that sharp has for one picture; 1 is what it has by itself on Linux with glibc |
//! | `--hundred OUT` | makes a hundred JPEGs of the photographs in a directory, and compares nothing |
//!
//! How it is fair: one thread each and no caches; both time themselves, inside their processes,
//! from the path of the file to the bytes of the WebP in memory; both were warmed up; they take
//! turns, so that what disturbs the machine disturbs both, and the least of all turns counts.
//! Besides the time on the clock, the processor time of the whole process is compared.

mod http;
mod hundred;
mod ours;
mod peer;
mod quality;
mod reference;
mod report;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use filestore_pictures::Fit;
use report::{Row, Table};
use serde_json::json;

/// The end of a part of the comparison.
type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// WebP quality on both sides.
const QUALITY: f32 = 80.0;

/// The seven sizes of a gallery.
const SIDES: [u32; 7] = [200, 250, 300, 400, 500, 700, 1000];

/// The time that one call took.
#[derive(Debug, Clone, Copy)]
struct Times {
    wall_ms: f64,
    /// Processor time of all threads of the process.
    cpu_ms: f64,
}

impl Times {
    const NEVER: Self = Self { wall_ms: f64::INFINITY, cpu_ms: f64::INFINITY };

    fn least(self, other: Self) -> Self {
        Self { wall_ms: self.wall_ms.min(other.wall_ms), cpu_ms: self.cpu_ms.min(other.cpu_ms) }
    }
}

/// The likeness of what was not compared.
const UNKNOWN: (f64, f64) = (f64::NAN, f64::NAN);

/// One picture to make.
#[derive(Debug, Clone, Copy)]
struct Asked<'a> {
    photo: &'a Path,
    side: u32,
    fit: Fit,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let outcome = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => {
            eprintln!(
                "usage: filestore-core/pictures/benches/compare/run PHOTOGRAPHS_DIR [options]"
            );
            Ok(())
        }
        ["--peak", photo, size, fit] => print_peak(photo, size, fit),
        _ => Options::parse(&args).and_then(|options| compare(&options)),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    photos: Vec<PathBuf>,
    sizes: Vec<u32>,
    fits: Vec<Fit>,
    rounds: usize,
    parts: Vec<String>,
    formats: Vec<String>,
    likeness: Likeness,
    server: Option<PathBuf>,
    sharp_threads: usize,
    hundred: Option<PathBuf>,
}

/// How far variants are from their reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Likeness {
    Dssim,
    /// Not compared.
    Unknown,
}

/// Reads a fit as requests spell it.
fn fit_of(name: &str) -> Outcome<Fit> {
    let fits = [Fit::Cover, Fit::Inside];
    let fit = fits.into_iter().find(|fit| ours::fit_name(*fit) == name);
    Ok(fit.ok_or_else(|| format!("a fit is cover or inside, not {name}"))?)
}

impl Options {
    fn parse(args: &[String]) -> Outcome<Self> {
        let (directory, named) = args.split_first().ok_or("no directory of photographs")?;
        let numbers = values(named, "--sizes", "200,400,1000");

        Ok(Self {
            photos: photographs(Path::new(directory))?,
            sizes: numbers.iter().map(|side| side.parse()).collect::<Result<_, _>>()?,
            fits: values(named, "--fits", "cover,inside")
                .iter()
                .map(|fit| fit_of(fit))
                .collect::<Result<_, _>>()?,
            rounds: values(named, "--rounds", "7")[0].parse()?,
            parts: values(named, "--parts", "single,seven,peak"),
            formats: values(named, "--formats", "original"),
            likeness: match values(named, "--likeness", "dssim")[0].as_str() {
                "none" => Likeness::Unknown,
                _ => Likeness::Dssim,
            },
            server: path(named, "--server"),
            sharp_threads: values(named, "--sharp-threads", "1")[0].parse()?,
            hundred: path(named, "--hundred"),
        })
    }

    fn has(&self, part: &str) -> bool {
        self.parts.iter().any(|given| given == part)
    }
}

/// Returns the values of the option `name`, which stands before its value in `named`.
fn values(named: &[String], name: &str, default: &str) -> Vec<String> {
    let given = named.chunks(2).find(|pair| pair[0] == name).and_then(|pair| pair.get(1));
    given.map_or(default, |value| value).split(',').map(str::to_owned).collect()
}

fn path(named: &[String], name: &str) -> Option<PathBuf> {
    Some(&values(named, name, "")[0]).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn photographs(directory: &Path) -> Outcome<Vec<PathBuf>> {
    let entries =
        std::fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let mut found: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| is_picture(path))
        .collect();
    found.sort();

    if found.is_empty() {
        return Err(format!("no photographs (jpg, png) in {}", directory.display()).into());
    }
    Ok(found)
}

fn is_picture(path: &Path) -> bool {
    let extension = path.extension().map(|end| end.to_string_lossy().to_lowercase());
    extension.is_some_and(|end| ["jpg", "jpeg", "png"].contains(&end.as_str()))
}

fn compare(options: &Options) -> Outcome {
    let work = tempfile::tempdir()?;
    let mut sharp = peer::Sharp::start(options.sharp_threads)?;
    println!("sharp {}", sharp.ask(&json!({"op": "version"}))?);

    if let Some(out) = &options.hundred {
        return hundred::make(&mut sharp, &options.photos, out);
    }
    if let Some(program) = &options.server {
        for format in &options.formats {
            over_http(options, &mut sharp, program, (format, work.path()))?;
        }
        return Ok(());
    }
    if options.has("single") {
        for format in &options.formats {
            let mut table = Table::new(&format!("one variant, from {format}"));
            for photo in &options.photos {
                let photo = converted(&mut sharp, photo, format, work.path())?;
                single(options, &mut sharp, &photo, work.path(), &mut table)?;
            }
            table.summary();
        }
    }
    if options.has("seven") {
        let mut table = report::Sevens::new("all seven sizes of one photograph");
        for photo in &options.photos {
            seven(options, &mut sharp, photo, work.path(), &mut table)?;
        }
        table.summary();
    }
    if options.has("peak") {
        peak(options)?;
    }
    Ok(())
}

/// Converts a photograph to `format` with sharp, unless it is wanted as it is.
fn converted(sharp: &mut peer::Sharp, photo: &Path, format: &str, work: &Path) -> Outcome<PathBuf> {
    if format == "original" {
        return Ok(photo.to_owned());
    }

    let out = work.join(report::name(photo)).with_extension(format);
    sharp.ask(&json!({"op": "convert", "path": photo, "format": format, "out": out}))?;
    Ok(out)
}

/// Every size and fit of one photograph: times in turns, then the likeness to the reference.
fn single(
    options: &Options,
    sharp: &mut peer::Sharp,
    photo: &Path,
    work: &Path,
    table: &mut Table,
) -> Outcome {
    let facts = sharp.facts(photo)?;
    let full = match options.likeness {
        Likeness::Dssim => Some(reference::Full::decode(sharp, photo, &work.join("full.rgb"))?),
        Likeness::Unknown => None,
    };
    for &fit in &options.fits {
        for &size in &options.sizes {
            let wanted = Asked { photo, side: size, fit };
            let out = work.join("sharp.webp");
            // The warm-up, whose pictures are kept.
            let Some(bytes) = ours::make(wanted)?.1 else { continue };
            sharp.make(wanted, Some(&out))?;

            let (mut our_times, mut sharp_times) = (Times::NEVER, Times::NEVER);
            for _ in 0..options.rounds {
                our_times = our_times.least(ours::make(wanted)?.0);
                sharp_times = sharp_times.least(sharp.make(wanted, None)?);
            }

            let theirs = std::fs::read(&out)?;
            table.add(Row {
                photo: report::name(photo),
                facts: facts.clone(),
                size,
                fit,
                ours: our_times,
                sharp: sharp_times,
                bytes: (bytes.len(), theirs.len()),
                dssim: match &full {
                    Some(full) => likeness(work, full, (size, fit), &bytes, &theirs)?,
                    None => UNKNOWN,
                },
            });
        }
    }
    Ok(())
}

/// Every size and fit of all photographs as clients see them: from the request to the last byte. Our
/// file is uploaded anew for each request, which is not timed, so that no cache knows it.
fn over_http(
    options: &Options,
    sharp: &mut peer::Sharp,
    program: &Path,
    (format, work): (&str, &Path),
) -> Outcome {
    let ours = http::Server::start(program)?;
    let (mut us, mut them) = (ours.connect()?, http::Connection::open(sharp.serve()?)?);
    let heading = format!("one variant over HTTP, from {format} (both times are on the clock)");
    let mut table = Table::new(&heading);
    for photo in &options.photos {
        let photo = &*converted(sharp, photo, format, work)?;
        let facts = sharp.facts(photo)?;
        for &fit in &options.fits {
            for &size in &options.sizes {
                let wanted = Asked { photo, side: size, fit };
                let (mut our_times, mut sharp_times) = (Times::NEVER, Times::NEVER);
                let mut bytes = (0, 0);
                // The first turn warms up.
                for turn in 0..=options.rounds {
                    let id = us.upload(photo)?;
                    let (our_turn, ours) = us.get(&http::our_path(&id, wanted))?;
                    let (sharp_turn, theirs) = them.get(&http::sharp_path(wanted))?;
                    bytes = (ours, theirs);
                    if turn > 0 {
                        our_times = our_times.least(our_turn);
                        sharp_times = sharp_times.least(sharp_turn);
                    }
                }
                let photo = report::name(photo);
                let facts = facts.clone();
                let dssim = UNKNOWN;
                table.add(Row {
                    photo,
                    facts,
                    size,
                    fit,
                    ours: our_times,
                    sharp: sharp_times,
                    bytes,
                    dssim,
                });
            }
        }
    }
    table.summary();
    Ok(())
}

/// All seven sizes of one photograph: times in turns, then the likeness of each to its reference.
fn seven(
    options: &Options,
    sharp: &mut peer::Sharp,
    photo: &Path,
    work: &Path,
    table: &mut report::Sevens,
) -> Outcome {
    let full = reference::Full::decode(sharp, photo, &work.join("full.rgb"))?;
    for &fit in &options.fits {
        // The warm-up, whose pictures are kept.
        let (_, made) = ours::seven(photo, fit)?;
        sharp.seven(photo, fit, Some(work))?;

        let (mut our_times, mut sharp_times) = (Times::NEVER, Times::NEVER);
        for _ in 0..options.rounds.div_ceil(2) {
            our_times = our_times.least(ours::seven(photo, fit)?.0);
            sharp_times = sharp_times.least(sharp.seven(photo, fit, None)?);
        }

        let sizes = made.into_iter().map(|(size, bytes)| {
            let theirs = std::fs::read(work.join(format!("{size}.webp")))?;
            let dssim = likeness(work, &full, (size, fit), &bytes, &theirs)?;
            Ok(report::OfSeven { size, bytes: (bytes.len(), theirs.len()), dssim })
        });
        table.add(
            &report::name(photo),
            fit,
            our_times,
            sharp_times,
            sizes.collect::<Outcome<_>>()?,
        );
    }
    Ok(())
}

/// The DSSIM of our variant and of sharp's, each to the reference in its own place.
fn likeness(
    work: &Path,
    full: &reference::Full,
    (size, fit): (u32, Fit),
    ours: &[u8],
    theirs: &[u8],
) -> Outcome<(f64, f64)> {
    let our_place = reference::Place::ours(full, ours, fit)?;
    let sharp_place = reference::Place::of_sharp(full, theirs, size, fit)?;
    Ok((
        quality::dssim(work, full, our_place, ours)?,
        quality::dssim(work, full, sharp_place, theirs)?,
    ))
}

/// Peak memory of one variant, each in a process of its own.
fn peak(options: &Options) -> Outcome {
    let mut peaks = report::Peaks::new();
    for photo in &options.photos {
        for &size in &options.sizes {
            let wanted = Asked { photo, side: size, fit: Fit::Inside };
            let Some(ours) = ours::peak_kib(wanted)? else { continue };
            peaks.add(
                &report::name(photo),
                size,
                ours,
                peer::Sharp::start(options.sharp_threads)?.peak_kib(wanted)?,
            );
        }
    }
    peaks.summary();
    Ok(())
}

/// Prints the peak for [`ours::peak_kib`], which runs this in a process of its own.
fn print_peak(photo: &str, size: &str, fit: &str) -> Outcome {
    let wanted = Asked { photo: Path::new(photo), side: size.parse()?, fit: fit_of(fit)? };
    match ours::grown_kib(wanted)? {
        Some(kib) => println!("{kib}"),
        None => println!("passes through"),
    }
    Ok(())
}
