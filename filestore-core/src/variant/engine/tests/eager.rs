//! Variants made in advance.

use super::*;
use crate::variant::engine::pool::Kind;

/// Both fits of all sizes.
fn every_key(file: FileId) -> Vec<VariantKey> {
    let sizes =
        crate::domain::file::variant::VARIANT_SIZES.map(|size| key(file, &size.to_string()));
    sizes
        .into_iter()
        .flat_map(|key| [VariantKey { fit: Fit::Inside, ..key.clone() }, key])
        .collect()
}

#[tokio::test]
async fn variants_made_in_advance_cost_one_opening() {
    let bench = Bench::new();
    let keys = every_key(file_id());
    bench.prepare(keys.clone());
    // Of 420 × 300 pixels: 200, 250, 300 and 400 are made, the others pass through.
    while bench.engine.report().await.eager_made < 8 {
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.opened(), 1);
    for key in &keys {
        assert_eq!(bench.engine.cached(key).is_some(), key.size.pixels() <= 400, "{key:?}");
    }
    // Once more, and of something else: nothing is made twice, and the queue goes on.
    bench.prepare(keys);
    bench.prepare(vec![key(file_id(), "200")]);
    while bench.engine.report().await.eager_made < 9 {
        tokio::task::yield_now().await;
    }
    let report = bench.engine.report().await;
    assert_eq!((report.disk_entries, report.eager_waiting, report.eager_dropped), (9, 0, 0));
}

#[tokio::test]
async fn what_is_made_in_advance_gives_way_to_requests_for_the_memory() {
    let bench = Bench::new();
    let key = key(file_id(), "200");
    let pool = &bench.engine.shared.pool;
    let taken = pool.memory_if_free(pool.free_bytes()).unwrap();
    bench.prepare(vec![key.clone()]);
    while bench.engine.report().await.eager_dropped == 0 {
        tokio::task::yield_now().await;
    }
    drop(taken);
    assert_eq!(bench.engine.report().await.disk_entries, 0);
    bench.get(&key).await.unwrap();
}

#[tokio::test]
async fn what_is_made_in_advance_breaks_off_when_requests_wait_for_a_thread() {
    // A picture that is too slow for its deadline would be neither made nor dropped.
    let deadline = Duration::from_mins(10);
    let mut bench = Bench::with(VariantConfig { threads: 1, deadline, ..VariantConfig::default() });
    bench.picture = Arc::new(jpeg(1600, 1200));

    let Shared { eager, flights, pool, .. } = &*bench.engine.shared;
    // On a busy machine the work may end before the request comes: then another file is tried.
    let (keys, made) = loop {
        let keys = every_key(file_id());
        let before = eager.made();
        bench.prepare(keys.clone());
        while !flights.is_under_way(&keys[0].digest()) && eager.made() == before {
            tokio::task::yield_now().await;
        }
        // The only thread is at work: this waits until that gives way.
        let place = pool.place(&keys[0].organization_id).unwrap();
        place.submit(Kind::Still, 0, drop);
        while eager.dropped() == 0 && eager.made() - before < keys.len() as u64 {
            tokio::task::yield_now().await;
        }
        if eager.dropped() > 0 {
            break (keys, eager.made() - before);
        }
    };
    assert!((1..keys.len() as u64).contains(&made), "{made}");
    let there = keys.iter().filter(|key| bench.engine.cached(key).is_some()).count();
    assert_eq!(there as u64, made, "what was made is kept");
    for key in &keys {
        bench.get(key).await.unwrap();
    }
}

#[tokio::test]
async fn nothing_is_decoded_but_on_the_threads_for_it() {
    let bench = Bench::with(VariantConfig { threads: 2, ..VariantConfig::default() });
    let (go, gate) = std::sync::mpsc::channel::<()>();
    let gate = Arc::new(std::sync::Mutex::new(gate));
    let places = [(); 2].map(|()| {
        let (gate, organization) = (gate.clone(), key(file_id(), "200").organization_id);
        let place = bench.engine.shared.pool.place(&organization).unwrap();
        place.submit(Kind::Still, 0, move |_held| {
            let _ = gate.lock().unwrap().recv();
        });
        place
    });
    while bench.engine.shared.pool.is_pressed() {
        tokio::task::yield_now().await;
    }
    let (key, open) = (key(file_id(), "200"), self::gate());
    open.add_permits(1);
    let asked = bench.ask(&key, &open);
    // This thread, the only one of the runtime, goes on while the request waits for another.
    while !bench.engine.shared.pool.is_pressed() {
        tokio::task::yield_now().await;
    }
    assert!(!asked.is_finished());
    drop((go, places));
    asked.await.unwrap().unwrap();
}

#[tokio::test]
async fn more_files_than_may_wait_are_dropped_and_the_rest_is_made() {
    let bench = Bench::new();
    let gate = gate();
    for _ in 0..300 {
        let source = bench.source(Some(gate.clone()));
        bench.engine.prepare(vec![key(file_id(), "200")], source);
    }
    let report = bench.engine.report().await;
    assert!(report.eager_waiting >= 255 && report.eager_dropped >= 43, "{report:?}");
    gate.add_permits(1000);
    // None is forgotten: each is made or counted as dropped.
    let eager = &bench.engine.shared.eager;
    while eager.made() + eager.dropped() < 300 {
        tokio::task::yield_now().await;
    }
    assert!(eager.made() > 0);
}

#[tokio::test]
async fn files_of_one_organization_leave_places_and_turns_to_those_of_another() {
    let bench = Bench::new();
    let gate = gate();
    for _ in 0..300 {
        let source = bench.source(Some(gate.clone()));
        bench.engine.prepare(vec![key(file_id(), "200")], source);
    }
    bench.until_opened(1).await;
    let theirs = VariantKey { organization_id: "other".parse().unwrap(), ..key(file_id(), "200") };
    bench.prepare(vec![theirs.clone()]);

    // One more of the greedy one's, which was under way.
    gate.add_permits(1);
    while bench.engine.cached(&theirs).is_none() {
        tokio::task::yield_now().await;
    }
    assert!(bench.engine.report().await.eager_made <= 2);
    gate.close();
}

#[tokio::test]
async fn nothing_is_made_in_advance_of_a_blob_that_is_gone_and_refusals_are_remembered() {
    let mut bench = Bench::new();
    let gone = || std::future::ready(false);
    bench.engine.prepare(vec![key(file_id(), "200")], Source::new(bench.open(None), gone));
    bench.picture = Arc::new(b"no picture at all".to_vec());
    let broken = key(file_id(), "200");
    bench.prepare(vec![broken.clone()]);
    // The files are worked off in their order: the last one's variant says that all are done.
    bench.picture = Arc::new(jpeg(420, 300));
    bench.prepare(vec![key(file_id(), "200")]);
    while bench.engine.report().await.eager_made == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(bench.opened(), 2);
    assert_eq!(bench.get(&broken).await.unwrap_err().kind(), ErrorKind::NotAnImage);
    assert_eq!(bench.opened(), 2, "the refusal was remembered");
}
