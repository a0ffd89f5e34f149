//! The cache on disk: damage, the budget, and sweeps beside removals.

use super::*;
use crate::variant::fixtures::{file_id, key};

const RECIPE_80: Recipe = Recipe { quality: 80.0 };

fn open(root: &Path, budget_bytes: u64) -> DiskCache {
    DiskCache::open(root, RECIPE_80, budget_bytes).unwrap()
}

fn webp(bytes: usize) -> Stored {
    Stored::Variant(Variant::WebP(Bytes::from(vec![7; bytes])))
}

fn digest(file: FileId) -> KeyDigest {
    key(file, "200").digest()
}

#[test]
fn an_entry_survives_reopening() {
    let root = tempfile::tempdir().unwrap();
    let (one, two, three) = (file_id(), file_id(), file_id());
    let pass = Stored::Variant(Variant::PassThrough { mime: "image/gif" });
    let cache = open(root.path(), 1 << 20);
    cache.write(one, digest(one), &webp(5000)).unwrap();
    cache.write(two, digest(two), &pass).unwrap();
    cache.write(three, digest(three), &Stored::Still).unwrap();
    let cache = open(root.path(), 1 << 20);
    assert_eq!(cache.read(one, digest(one)), Some(webp(5000)));
    assert_eq!(cache.read(two, digest(two)), Some(pass));
    assert_eq!(cache.read(three, digest(three)), Some(Stored::Still));
    assert_eq!(cache.count(), Usage { entries: 3, bytes: 8192 + 2 * 4096 });
}

#[test]
fn a_file_is_removed_while_a_sweep_takes_its_entries() {
    let root = tempfile::tempdir().unwrap();
    // Nothing fits: a sweep takes all there is.
    let cache = open(root.path(), 0);
    for _ in 0..100 {
        let file = file_id();
        for size in ["200", "250", "300", "400", "500", "700", "1000"] {
            cache.write(file, key(file, size).digest(), &webp(10)).unwrap();
        }
        std::thread::scope(|threads| {
            threads.spawn(|| cache.sweep());
            cache.remove_file(file).unwrap();
        });
        assert!(!cache.directory(file).exists());
    }
}

#[test]
fn every_damage_to_an_entry_makes_it_a_miss() {
    let root = tempfile::tempdir().unwrap();
    let cache = open(root.path(), 1 << 20);
    let file = file_id();
    let path = cache.path(file, digest(file));
    cache.write(file, digest(file), &webp(40)).unwrap();
    let good = fs::read(&path).unwrap();
    let mut damaged: Vec<Vec<u8>> = (0..good.len()).map(|end| good[..end].to_vec()).collect();
    damaged.extend((0..good.len()).map(|at| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    }));
    damaged.push([&good[..], b"x"].concat());
    for bytes in damaged {
        fs::write(&path, &bytes).unwrap();
        assert_eq!(cache.read(file, digest(file)), None);
        assert!(!path.exists(), "a bad entry stays");
    }
    fs::write(&path, &good).unwrap();
    assert_eq!(cache.read(file, digest(file)), Some(webp(40)));
}

#[test]
fn an_entry_under_another_key_or_of_another_quality_is_a_miss() {
    let root = tempfile::tempdir().unwrap();
    let cache = open(root.path(), 1 << 20);
    let (one, two) = (file_id(), file_id());
    cache.write(one, digest(one), &webp(40)).unwrap();
    cache.write(two, digest(two), &webp(50)).unwrap();
    fs::copy(cache.path(one, digest(one)), cache.path(two, digest(two))).unwrap();
    assert_eq!(cache.read(two, digest(two)), None);
    let other = DiskCache::open(root.path(), Recipe { quality: 70.0 }, 1 << 20).unwrap();
    assert_eq!(other.read(one, digest(one)), None);
}

#[test]
fn a_file_loses_all_its_entries_and_no_other_does() {
    let root = tempfile::tempdir().unwrap();
    let cache = open(root.path(), 1 << 20);
    let (one, two) = (file_id(), file_id());
    for size in ["200", "400", "1000"] {
        cache.write(one, key(one, size).digest(), &webp(10)).unwrap();
    }
    cache.write(two, digest(two), &webp(10)).unwrap();
    cache.remove_file(one).unwrap();
    cache.remove_file(one).unwrap();
    assert!(!cache.directory(one).exists());
    assert_eq!(cache.count().entries, 1);
    assert_eq!(cache.size.lock().usage, cache.count());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "sets the times that the kernel would")]
fn the_budget_is_kept_and_the_latest_used_stay() {
    let root = tempfile::tempdir().unwrap();
    let cache = open(root.path(), 10 * 4096);
    let files: Vec<FileId> = (0..20).map(|_| file_id()).collect();
    for (age, file) in files.iter().enumerate() {
        cache.write(*file, digest(*file), &webp(100)).unwrap();
        let entry = File::open(cache.path(*file, digest(*file))).unwrap();
        entry.set_modified(SystemTime::now() - Duration::from_secs(100_000 * age as u64)).unwrap();
    }
    // Used a moment ago: a hit renews the oldest of them.
    assert!(cache.read(files[19], digest(files[19])).is_some());
    assert!(cache.is_over_budget());
    cache.sweep();
    assert!(!cache.is_over_budget());
    assert_eq!(cache.count(), Usage { entries: 9, bytes: 9 * 4096 });
    for kept in files[..8].iter().chain(&files[19..]) {
        assert!(cache.read(*kept, digest(*kept)).is_some());
    }
}

#[test]
fn the_budget_is_kept_by_writers_that_sweep_at_once() {
    let root = tempfile::tempdir().unwrap();
    let cache = open(root.path(), 10 * 4096);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let file = file_id();
                    cache.write(file, digest(file), &webp(100)).unwrap();
                    if cache.is_over_budget() {
                        cache.sweep();
                    }
                }
            });
        }
    });
    // A sweep leaves to the writers after it what they write, and what it missed to itself.
    assert!(!cache.is_over_budget());
    assert!(cache.count().bytes <= 10 * 4096, "{:?}", cache.count());
}

#[test]
fn opening_counts_nothing_and_clears_what_was_half_written() {
    let root = tempfile::tempdir().unwrap();
    let leftover = root.path().join(TEMPORARY).join("half");
    fs::create_dir_all(leftover.parent().unwrap()).unwrap();
    fs::write(&leftover, b"x").unwrap();
    let cache = open(root.path(), 1 << 20);
    assert!(!leftover.exists());
    let file = file_id();
    cache.write(file, digest(file), &webp(10)).unwrap();
    assert_eq!(cache.clear(), Usage { entries: 1, bytes: 4096 });
    assert_eq!(cache.count(), Usage::default());
}
