//! The engine as its callers meet it: concurrency, cancellation, staleness, both caches.

mod animated;
mod eager;
mod sheet;

use std::fs::File;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::Semaphore;

use super::shared::Shared;
use super::{CellSource, Source, VariantEngine};
use crate::domain::config::VariantConfig;
use crate::domain::error::{Error, ErrorKind, Result};
use crate::domain::file::sheet::SheetGrid;
use crate::domain::id::{FileId, Sha256};
use crate::variant::cache::CacheReport;
use crate::variant::fixtures::{file, file_id, jpeg, key, size, size_of};
use crate::variant::{Fit, SheetKey, Variant, VariantKey};

/// What a blob's opening waits for: it passes once permits are added.
type Gate = Arc<Semaphore>;
/// A blob that opens.
type Opened = Pin<Box<dyn Future<Output = Result<File>> + Send>>;

fn gate() -> Gate {
    Arc::new(Semaphore::new(0))
}

/// An engine over a directory of its own, and a picture to make variants of.
struct Bench {
    engine: VariantEngine,
    directory: TempDir,
    picture: Arc<Vec<u8>>,
    /// How often a blob was opened: how often something was made.
    opened: Arc<AtomicUsize>,
    current: Arc<AtomicBool>,
}

impl Bench {
    fn new() -> Self {
        Self::with(VariantConfig { threads: 2, ..VariantConfig::default() })
    }

    fn with(config: VariantConfig) -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self {
            engine: VariantEngine::open(directory.path(), config).unwrap(),
            directory,
            picture: Arc::new(jpeg(420, 300)),
            opened: Arc::default(),
            current: Arc::new(AtomicBool::new(true)),
        }
    }

    fn reopen(&mut self, config: VariantConfig) {
        self.engine = VariantEngine::open(self.directory.path(), config).unwrap();
    }

    fn opened(&self) -> usize {
        self.opened.load(Ordering::SeqCst)
    }

    /// Opens the picture when `gate` lets it.
    fn open(&self, gate: Option<Gate>) -> impl Fn() -> Opened + Send + Sync + use<> {
        let (picture, opened) = (self.picture.clone(), self.opened.clone());
        move || {
            let (picture, opened, gate) = (picture.clone(), opened.clone(), gate.clone());
            Box::pin(async move {
                opened.fetch_add(1, Ordering::SeqCst);
                if let Some(gate) = gate {
                    let _ = gate.acquire().await.unwrap();
                }
                Ok(file(&picture))
            })
        }
    }

    fn source(&self, gate: Option<Gate>) -> Source {
        Source::new(self.open(gate), self.still_current())
    }

    fn still_current(&self) -> impl Fn() -> std::future::Ready<bool> + Send + Sync + use<> {
        let current = self.current.clone();
        move || std::future::ready(current.load(Ordering::SeqCst))
    }

    async fn get(&self, key: &VariantKey) -> Result<Variant> {
        self.engine.get(key.clone(), self.source(None)).await
    }

    /// Asks in a task of its own; the blob opens when `gate` lets it.
    fn ask(&self, key: &VariantKey, gate: &Gate) -> tokio::task::JoinHandle<Result<Variant>> {
        let (engine, key) = (self.engine.clone(), key.clone());
        let source = self.source(Some(gate.clone()));
        tokio::spawn(async move { engine.get(key, source).await })
    }

    async fn until_opened(&self, times: usize) {
        while self.opened() < times {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until what a rendering leaves is kept.
    async fn until_kept(&self) {
        while self.engine.report().await.intermediate_bytes == 0 {
            tokio::task::yield_now().await;
        }
    }

    fn prepare(&self, keys: Vec<VariantKey>) {
        self.engine.prepare(keys, self.source(None));
    }

    fn entry(&self, key: &VariantKey) -> PathBuf {
        let id = key.file_id.to_string();
        self.directory.path().join(&id[24..]).join(&id).join(key.digest().to_hex())
    }
}

fn webp(variant: Variant) -> bytes::Bytes {
    match variant {
        Variant::WebP(bytes) => bytes,
        Variant::PassThrough { mime } => panic!("{mime} passed through"),
    }
}

#[tokio::test]
async fn a_variant_is_made_once_and_then_comes_from_memory() {
    let bench = Bench::new();
    let key = key(file_id(), "200");
    assert_eq!(bench.engine.cached(&key), None);
    let made = bench.get(&key).await.unwrap();
    assert_eq!(size_of(&webp(made.clone())), (200, 200));
    assert_eq!(bench.engine.cached(&key), Some(made.clone()));
    assert_eq!(bench.get(&key).await.unwrap(), made);
    assert_eq!(bench.opened(), 1);
}

#[tokio::test]
async fn sizes_and_fits_are_variants_of_their_own() {
    let bench = Bench::new();
    let cover = key(file_id(), "200");
    let inside = VariantKey { fit: Fit::Inside, ..cover.clone() };
    let larger = VariantKey { size: size("400"), ..cover.clone() };
    for (key, expected) in [(&cover, (200, 200)), (&inside, (200, 143)), (&larger, (300, 300))] {
        assert_eq!(size_of(&webp(bench.get(key).await.unwrap())), expected);
    }
    let whole = VariantKey { size: size("500"), ..cover };
    assert_eq!(bench.get(&whole).await.unwrap(), Variant::PassThrough { mime: "image/jpeg" });
    assert_eq!(bench.engine.report().await.disk_entries, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_who_ask_at_once_share_one_rendering() {
    let bench = Bench::new();
    let (key, gate) = (key(file_id(), "200"), gate());
    let asked: Vec<_> = (0..50).map(|_| bench.ask(&key, &gate)).collect();
    bench.until_opened(1).await;
    gate.add_permits(100);
    let mut variants = Vec::new();
    for handle in asked {
        variants.push(handle.await.unwrap().unwrap());
    }
    assert!(variants.iter().all(|variant| *variant == variants[0]));
    assert_eq!(bench.opened(), 1);
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_stop_the_work() {
    let bench = Bench::new();
    let (key, gate) = (key(file_id(), "200"), gate());
    let first = bench.ask(&key, &gate);
    bench.until_opened(1).await;
    let second = bench.ask(&key, &gate);
    first.abort();
    assert!(first.await.unwrap_err().is_cancelled());
    gate.add_permits(100);
    second.await.unwrap().unwrap();
    assert_eq!(bench.opened(), 1);
    assert!(bench.engine.cached(&key).is_some());
}

#[tokio::test]
async fn work_is_finished_and_kept_even_if_everyone_goes_away() {
    let bench = Bench::new();
    let (key, gate) = (key(file_id(), "200"), gate());
    let only = bench.ask(&key, &gate);
    bench.until_opened(1).await;
    only.abort();
    gate.add_permits(100);
    while bench.engine.cached(&key).is_none() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_full_queue_is_busy_and_says_when_to_come_back() {
    let bench = Bench::with(VariantConfig { threads: 1, queue: 1, ..VariantConfig::default() });
    let gate = gate();
    let waiting = [key(file_id(), "200"), key(file_id(), "200")].map(|key| bench.ask(&key, &gate));
    bench.until_opened(2).await;
    let late = key(file_id(), "200");
    let refused = bench.get(&late).await.unwrap_err();
    assert_eq!((refused.kind(), refused.details().retry_after_secs), (ErrorKind::Busy, Some(1)));
    gate.add_permits(100);
    for handle in waiting {
        handle.await.unwrap().unwrap();
    }
    // Being busy is not remembered.
    bench.get(&late).await.unwrap();
}

#[tokio::test]
async fn an_organization_that_waits_with_all_places_taken_loses_one_to_another() {
    let bench = Bench::with(VariantConfig { threads: 1, queue: 3, ..VariantConfig::default() });
    let gate = gate();
    let greedy: Vec<_> = (0..4).map(|_| bench.ask(&key(file_id(), "200"), &gate)).collect();
    bench.until_opened(4).await;
    let theirs = VariantKey { organization_id: "other".parse().unwrap(), ..key(file_id(), "200") };
    bench.get(&theirs).await.unwrap();

    // One of the greedy one's lost its place, and nothing else of it.
    gate.add_permits(100);
    let mut lost = Vec::new();
    for handle in greedy {
        lost.extend(handle.await.unwrap().err());
    }
    let [lost] = &lost[..] else { panic!("{lost:?}") };
    assert_eq!((lost.kind(), lost.details().retry_after_secs), (ErrorKind::Busy, Some(1)));
}

#[tokio::test]
async fn nothing_is_made_of_a_blob_that_is_no_longer_current() {
    let bench = Bench::new();
    bench.current.store(false, Ordering::SeqCst);
    let key = key(file_id(), "200");
    assert_eq!(bench.get(&key).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(bench.opened(), 0);
}

#[tokio::test]
async fn a_result_whose_blob_was_replaced_meanwhile_is_not_published() {
    let bench = Bench::new();
    let (key, gate) = (key(file_id(), "200"), gate());
    let asked = bench.ask(&key, &gate);
    bench.until_opened(1).await;
    // What a replace or purge does: the record first, then the variants.
    bench.current.store(false, Ordering::SeqCst);
    bench.engine.remove_file(key.file_id).await.unwrap();
    gate.add_permits(100);
    // Its caller asked while the blob was current, and gets what it asked for.
    asked.await.unwrap().unwrap();
    assert_eq!(bench.engine.cached(&key), None);
    assert_eq!(bench.engine.report().await, CacheReport::default());
}

#[tokio::test]
async fn a_result_whose_blob_is_replaced_while_it_is_published_is_withdrawn() {
    let bench = Bench::new();
    let key = key(file_id(), "200");
    // Current before the work and before the publication, not after it.
    let asked = Arc::new(AtomicUsize::new(0));
    let still_current = move || std::future::ready(asked.fetch_add(1, Ordering::SeqCst) < 2);
    bench.engine.get(key.clone(), Source::new(bench.open(None), still_current)).await.unwrap();
    assert_eq!(bench.engine.cached(&key), None);
    assert_eq!(bench.engine.report().await, CacheReport::default());
}

#[tokio::test]
async fn the_disk_cache_outlives_the_engine() {
    let mut bench = Bench::new();
    let key = key(file_id(), "200");
    let made = bench.get(&key).await.unwrap();
    bench.reopen(VariantConfig::default());
    assert_eq!(bench.engine.cached(&key), None);
    assert_eq!(bench.get(&key).await.unwrap(), made);
    assert_eq!(bench.opened(), 1);
    assert!(bench.engine.cached(&key).is_some(), "what came from disk is in memory now");
}

#[tokio::test]
async fn a_hit_on_disk_for_a_blob_that_is_gone_is_not_kept_in_memory() {
    let mut bench = Bench::new();
    let key = key(file_id(), "200");
    bench.get(&key).await.unwrap();
    bench.reopen(VariantConfig::default());
    bench.current.store(false, Ordering::SeqCst);
    bench.get(&key).await.unwrap();
    assert_eq!(bench.engine.report().await, CacheReport::default());
}

#[tokio::test]
async fn a_damaged_entry_is_made_again() {
    let mut bench = Bench::new();
    let key = key(file_id(), "200");
    let made = bench.get(&key).await.unwrap();
    let mut bytes = std::fs::read(bench.entry(&key)).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 0xFF;
    std::fs::write(bench.entry(&key), bytes).unwrap();
    bench.reopen(VariantConfig::default());
    assert_eq!(bench.get(&key).await.unwrap(), made);
    assert_eq!(bench.opened(), 2);
}

#[tokio::test]
async fn removing_a_file_removes_all_its_variants_and_no_others() {
    // Nothing is kept for other sizes: each one opens the file.
    let bench =
        Bench::with(VariantConfig { intermediate_cache_bytes: 0, ..VariantConfig::default() });
    let (gone, kept) = (file_id(), file_id());
    for size in ["200", "250", "300"] {
        bench.get(&key(gone, size)).await.unwrap();
    }
    bench.get(&key(kept, "200")).await.unwrap();
    bench.engine.remove_file(gone).await.unwrap();
    assert_eq!(bench.engine.cached(&key(gone, "250")), None);
    assert!(bench.engine.cached(&key(kept, "200")).is_some());
    let report = bench.engine.report().await;
    assert_eq!((report.disk_entries, report.memory_entries), (1, 1));
    bench.get(&key(gone, "200")).await.unwrap();
    assert_eq!(bench.opened(), 5);
}

#[tokio::test]
async fn a_prune_empties_both_caches_and_says_how_much_it_removed() {
    let bench =
        Bench::with(VariantConfig { intermediate_cache_bytes: 0, ..VariantConfig::default() });
    for _ in 0..3 {
        bench.get(&key(file_id(), "200")).await.unwrap();
    }
    let before = bench.engine.report().await;
    assert_eq!((before.disk_entries, before.memory_entries, before.removed), (3, 3, 0));
    assert!(before.disk_bytes > 0 && before.memory_bytes > 0);
    assert_eq!(bench.engine.prune().await, CacheReport { removed: 6, ..CacheReport::default() });
}

#[tokio::test]
async fn the_disk_budget_is_kept() {
    let budget = 100 << 10;
    let config = VariantConfig { disk_cache_bytes: budget, ..VariantConfig::default() };
    let bench = Bench::with(config);
    for _ in 0..30 {
        bench.get(&key(file_id(), "300")).await.unwrap();
    }
    // The sweep runs behind the last request.
    while bench.engine.report().await.disk_bytes > budget {
        tokio::task::yield_now().await;
    }
    assert!(bench.engine.report().await.disk_entries > 0);
}

#[tokio::test]
async fn a_cache_that_cannot_be_written_to_only_costs_time() {
    let bench = Bench::new();
    std::fs::remove_dir_all(bench.directory.path()).unwrap();
    std::fs::write(bench.directory.path(), b"not a directory").unwrap();
    let key = key(file_id(), "200");
    bench.get(&key).await.unwrap();
    assert!(bench.engine.cached(&key).is_some());
    std::fs::remove_file(bench.directory.path()).unwrap();
}

#[tokio::test]
async fn a_refusal_is_remembered_and_a_failure_to_open_is_not() {
    let mut bench = Bench::new();
    bench.picture = Arc::new(b"no picture at all".to_vec());
    let key = key(file_id(), "200");
    for _ in 0..3 {
        assert_eq!(bench.get(&key).await.unwrap_err().kind(), ErrorKind::NotAnImage);
    }
    assert_eq!(bench.opened(), 1);

    let key = VariantKey { size: size("300"), ..key };
    let broken = || async { Err(Error::new(ErrorKind::ProviderUnavailable, "no answer")) };
    let source = Source::new(broken, bench.still_current());
    let error = bench.engine.get(key.clone(), source).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProviderUnavailable);
    bench.picture = Arc::new(jpeg(420, 300));
    bench.get(&key).await.unwrap();
}

#[tokio::test]
async fn a_rendering_past_its_deadline_fails_its_caller_and_frees_its_place() {
    let mut bench = Bench::with(VariantConfig {
        threads: 1,
        queue: 0,
        deadline: std::time::Duration::from_millis(2),
        ..VariantConfig::default()
    });
    bench.picture = Arc::new(jpeg(1200, 900));
    for _ in 0..2 {
        // The one place is free again once the thread has noticed.
        let error = loop {
            let error = bench.get(&key(file_id(), "200")).await.unwrap_err();
            if error.kind() != ErrorKind::Busy {
                break error;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(error.kind(), ErrorKind::ImageTooLarge);
        assert!(error.message().contains("too long"), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decoders_share_the_memory_budget() {
    // Room for one of these pictures at a time: all get done, one after another.
    let bench = Bench::with(VariantConfig {
        threads: 4,
        decode_memory_bytes: 20 << 20,
        ..VariantConfig::default()
    });
    let (gate, keys) = (gate(), (0..6).map(|_| key(file_id(), "200")));
    let asked: Vec<_> = keys.map(|key| bench.ask(&key, &gate)).collect();
    bench.until_opened(6).await;
    gate.add_permits(100);
    for handle in asked {
        handle.await.unwrap().unwrap();
    }
    // A thread gives its share back once it has seen what is worth keeping.
    while bench.engine.shared.pool.free_bytes() < 20 << 20 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn without_room_a_variant_is_kept_in_memory_only() {
    let mut bench = Bench::new();
    let has_room = Arc::new(AtomicBool::new(false));
    let asked = has_room.clone();
    let config = VariantConfig::default();
    let has_room_now = move || asked.load(Ordering::SeqCst);
    bench.engine =
        VariantEngine::open_beside(bench.directory.path(), config, has_room_now).unwrap();
    let [first, second] = [key(file_id(), "200"), key(file_id(), "200")];
    bench.get(&first).await.unwrap();
    assert!(bench.engine.cached(&first).is_some());
    assert_eq!(bench.engine.report().await.disk_entries, 0);
    has_room.store(true, Ordering::SeqCst);
    bench.get(&second).await.unwrap();
    assert_eq!(bench.engine.report().await.disk_entries, 1);
}

#[tokio::test]
async fn another_size_is_made_of_what_the_first_left() {
    let bench = Bench::new();
    let first = key(file_id(), "300");
    bench.get(&first).await.unwrap();
    bench.until_kept().await;
    for (size_text, expected) in [("200", (200, 200)), ("400", (300, 300))] {
        let other = VariantKey { size: size(size_text), ..first.clone() };
        assert_eq!(size_of(&webp(bench.get(&other).await.unwrap())), expected);
    }
    let whole = VariantKey { size: size("500"), ..first };
    assert_eq!(bench.get(&whole).await.unwrap(), Variant::PassThrough { mime: "image/jpeg" });
    assert_eq!(bench.opened(), 1);
}

#[tokio::test]
async fn what_is_kept_goes_with_its_file_and_serves_no_other_blob() {
    let bench = Bench::new();
    let first = key(file_id(), "200");
    bench.get(&first).await.unwrap();
    bench.until_kept().await;
    let replaced = VariantKey { sha256: Sha256([9; 32]), size: size("300"), ..first.clone() };
    bench.get(&replaced).await.unwrap();
    assert_eq!(bench.opened(), 2);
    bench.until_kept().await;
    bench.engine.remove_file(first.file_id).await.unwrap();
    bench.get(&VariantKey { size: size("250"), ..first }).await.unwrap();
    assert_eq!(bench.opened(), 3);
    assert!(bench.engine.prune().await.removed > 0);
}

#[tokio::test]
async fn what_a_rendering_leaves_of_a_blob_that_is_gone_is_not_kept() {
    let bench = Bench::new();
    let key = key(file_id(), "200");
    // Current before the work and around the publication, gone when the rest is kept.
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let still_current = move || std::future::ready(counted.fetch_add(1, Ordering::SeqCst) < 3);
    bench.engine.get(key, Source::new(bench.open(None), still_current)).await.unwrap();
    while asked.load(Ordering::SeqCst) < 4 {
        tokio::task::yield_now().await;
    }
    while bench.engine.report().await.intermediate_bytes > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn without_a_budget_nothing_is_kept() {
    let bench =
        Bench::with(VariantConfig { intermediate_cache_bytes: 0, ..VariantConfig::default() });
    let first = key(file_id(), "200");
    bench.get(&first).await.unwrap();
    bench.get(&VariantKey { size: size("300"), ..first }).await.unwrap();
    assert_eq!((bench.opened(), bench.engine.report().await.intermediate_bytes), (2, 0));
}

#[tokio::test]
async fn a_placeholder_is_made_once_after_the_first_variant_that_asks_for_one() {
    let bench = Bench::new();
    let (noted, mut notes) = tokio::sync::mpsc::unbounded_channel();
    let source = || {
        let noted = noted.clone();
        bench.source(None).with_placeholder(move |thumbhash| {
            let _ = noted.send(thumbhash);
            std::future::ready(())
        })
    };

    // Square variants show a part; the whole picture is decoded once more.
    let cut = key(file_id(), "200");
    bench.engine.get(cut.clone(), source()).await.unwrap();
    let first = notes.recv().await.unwrap();
    assert_eq!(bench.opened(), 2);

    // What is retained of a variant of the whole picture suffices.
    let whole = VariantKey { fit: Fit::Inside, ..key(file_id(), "200") };
    bench.engine.get(whole, source()).await.unwrap();
    let second = notes.recv().await.unwrap();
    assert_eq!(bench.opened(), 3);
    assert_eq!(first.as_bytes().len(), second.as_bytes().len());

    // A picture that passes through has one as well; a caller who wants none gets none.
    let small = key(file_id(), "700");
    bench.engine.get(small, source()).await.unwrap();
    assert_eq!(notes.recv().await.unwrap(), first);
    bench.get(&key(file_id(), "200")).await.unwrap();
    bench.prepare(vec![key(file_id(), "200")]);
    while bench.engine.report().await.eager_made == 0 {
        tokio::task::yield_now().await;
    }
    assert!(notes.try_recv().is_err());
}
