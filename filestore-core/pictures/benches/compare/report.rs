//! Tables: a line for each picture, then geometric means. Time ratios are sharp's over ours (over 1
//! we are faster); ratios of bytes, DSSIM and memory are ours over sharp's (under 1 we need less).

use std::path::Path;

use filestore_pictures::Fit;

use super::Times;
use super::ours::fit_name;

/// The facts about a photograph.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) size: String,
    pub(crate) progressive: bool,
    pub(crate) sampling: String,
}

/// One variant, made by both.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) photo: String,
    pub(crate) facts: Facts,
    pub(crate) size: u32,
    pub(crate) fit: Fit,
    pub(crate) ours: Times,
    pub(crate) sharp: Times,
    /// The bytes of the file: ours, sharp's.
    pub(crate) bytes: (usize, usize),
    /// The DSSIM to the reference: ours, sharp's.
    pub(crate) dssim: (f64, f64),
}

impl Row {
    fn ratios(&self) -> [f64; 4] {
        [
            self.sharp.wall_ms / self.ours.wall_ms,
            self.sharp.cpu_ms / self.ours.cpu_ms,
            ratio(self.bytes),
            self.dssim.0 / self.dssim.1,
        ]
    }
}

/// Names a photograph for the tables.
pub(crate) fn name(photo: &Path) -> String {
    photo.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// The table of single variants.
pub(crate) struct Table {
    rows: Vec<Row>,
}

impl Table {
    pub(crate) fn new(title: &str) -> Self {
        println!("\n{title}: least of all turns, ms");
        println!(
            "{:<16} {:<21} {:>4} {:<6} {:>8} {:>8} {:>6} {:>6} {:>6} {:>6}  {:>8}",
            "photo",
            "",
            "size",
            "fit",
            "ours",
            "sharp",
            "wall×",
            "cpu×",
            "bytes",
            "dssim",
            "(ours)"
        );
        Self { rows: Vec::new() }
    }

    pub(crate) fn add(&mut self, row: Row) {
        let [wall, cpu, bytes, dssim] = row.ratios();
        let kind = if row.facts.progressive { "progr." } else { "base" };
        let facts = format!("{} {kind} {}", row.facts.size, row.facts.sampling);
        println!(
            "{:<16.16} {facts:<21} {:>4} {:<6} {:>8.2} {:>8.2} {wall:>6.2} {cpu:>6.2} {bytes:>6.3} {dssim:>6.3}  {:>8.6}",
            row.photo,
            row.size,
            fit_name(row.fit),
            row.ours.wall_ms,
            row.sharp.wall_ms,
            row.dssim.0,
        );
        self.rows.push(row);
    }

    pub(crate) fn summary(&self) {
        println!(
            "\ngeometric means{:>9} {:>6} {:>6} {:>6} {:>6}  least wall×, cpu×",
            "", "wall×", "cpu×", "bytes", "dssim"
        );
        self.means("all", |_| true);
        self.means("baseline", |row| !row.facts.progressive);
        self.means("progressive", |row| row.facts.progressive);
        for fit in [Fit::Cover, Fit::Inside] {
            self.means(fit_name(fit), |row| row.fit == fit);
        }
        let mut sizes: Vec<_> = self.rows.iter().map(|row| row.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for size in sizes {
            self.means(&size.to_string(), |row| row.size == size);
            self.means(&format!("{size} baseline"), |row| {
                row.size == size && !row.facts.progressive
            });
            self.means(&format!("{size} progressive"), |row| {
                row.size == size && row.facts.progressive
            });
        }
    }

    fn means(&self, name: &str, belongs: impl Fn(&Row) -> bool) {
        let ratios: Vec<_> = self.rows.iter().filter(|row| belongs(row)).map(Row::ratios).collect();
        if ratios.is_empty() {
            return;
        }
        let [wall, cpu, bytes, dssim] =
            [0, 1, 2, 3].map(|column| mean(ratios.iter().map(|ratio| ratio[column])));
        let [least_wall, least_cpu] = [0, 1]
            .map(|column| ratios.iter().map(|ratio| ratio[column]).fold(f64::INFINITY, f64::min));
        println!(
            "{name:<18} {:>4} {wall:>6.2} {cpu:>6.2} {bytes:>6.3} {dssim:>6.3}  {least_wall:.2}, {least_cpu:.2}",
            ratios.len()
        );
    }
}

/// One of the seven sizes, made by both.
#[derive(Debug)]
pub(crate) struct OfSeven {
    pub(crate) size: u32,
    /// The bytes of the file: ours, sharp's.
    pub(crate) bytes: (usize, usize),
    /// The DSSIM to the reference: ours, sharp's.
    pub(crate) dssim: (f64, f64),
}

/// The table of seven sizes at once: a line for each photograph and fit, with the geometric means
/// of its sizes' bytes and DSSIM.
pub(crate) struct Sevens {
    /// Ratios of time on the clock and of processor time.
    times: Vec<[f64; 2]>,
    sizes: Vec<OfSeven>,
}

impl Sevens {
    pub(crate) fn new(title: &str) -> Self {
        println!("\n{title}: least of all turns, ms");
        println!(
            "{:<16} {:<6} {:>8} {:>8} {:>6} {:>6} {:>6} {:>6}",
            "photo", "fit", "ours", "sharp", "wall×", "cpu×", "bytes", "dssim"
        );
        Self { times: Vec::new(), sizes: Vec::new() }
    }

    pub(crate) fn add(
        &mut self,
        photo: &str,
        fit: Fit,
        ours: Times,
        sharp: Times,
        sizes: Vec<OfSeven>,
    ) {
        let [wall, cpu] = [sharp.wall_ms / ours.wall_ms, sharp.cpu_ms / ours.cpu_ms];
        let (bytes, dssim) = likeness(sizes.iter());
        println!(
            "{photo:<16.16} {:<6} {:>8.2} {:>8.2} {wall:>6.2} {cpu:>6.2} {bytes:>6.3} {dssim:>6.3}",
            fit_name(fit),
            ours.wall_ms,
            sharp.wall_ms
        );
        self.times.push([wall, cpu]);
        self.sizes.extend(sizes);
    }

    pub(crate) fn summary(&self) {
        let [wall, cpu] = [0, 1].map(|column| mean(self.times.iter().map(|ratio| ratio[column])));
        let (bytes, dssim) = likeness(self.sizes.iter());
        println!(
            "geometric means: wall {wall:.2} ×, processor {cpu:.2} ×, bytes {bytes:.3}, DSSIM {dssim:.3}"
        );
        let mut sizes: Vec<_> = self.sizes.iter().map(|one| one.size).collect();
        sizes.sort_unstable();
        sizes.dedup();
        for size in sizes {
            let (bytes, dssim) = likeness(self.sizes.iter().filter(|one| one.size == size));
            println!("{size:>20}: bytes {bytes:.3}, DSSIM {dssim:.3}");
        }
    }
}

/// Returns the geometric means of the ratios of bytes and DSSIM.
fn likeness<'a>(sizes: impl Iterator<Item = &'a OfSeven> + Clone) -> (f64, f64) {
    (
        mean(sizes.clone().map(|one| ratio(one.bytes))),
        mean(sizes.map(|one| one.dssim.0 / one.dssim.1)),
    )
}

/// The table of peak memory.
pub(crate) struct Peaks {
    ratios: Vec<f64>,
}

impl Peaks {
    pub(crate) fn new() -> Self {
        println!(
            "\npeak memory of one variant in a new process, MiB over the idle process, inside"
        );
        Self { ratios: Vec::new() }
    }

    pub(crate) fn add(&mut self, photo: &str, size: u32, ours_kib: u64, sharp_kib: u64) {
        let [ours, sharp] = [ours_kib, sharp_kib].map(|kib| float(kib) / 1024.0);
        println!("{photo:<16.16} {size:>4} {ours:>8.1} {sharp:>8.1} {:>6.2}", ours / sharp);
        self.ratios.push(ours / sharp);
    }

    pub(crate) fn summary(&self) {
        let most = self.ratios.iter().copied().fold(0.0, f64::max);
        println!("geometric mean {:.2}, most {most:.2}", mean(self.ratios.iter().copied()));
    }
}

fn ratio((ours, sharp): (usize, usize)) -> f64 {
    float(ours as u64) / float(sharp as u64)
}

/// Returns the geometric mean.
fn mean(ratios: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = ratios.clone().count();
    (ratios.map(f64::ln).sum::<f64>() / float(count as u64)).exp()
}

#[expect(clippy::cast_precision_loss, reason = "sizes and counts far below 2^52")]
fn float(n: u64) -> f64 {
    n as f64
}
