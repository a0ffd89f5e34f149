//! Animated variants beside the still ones: in the caches, in a restart, for pictures that do not move.

use super::*;
use crate::variant::Motion;
use crate::variant::fixtures::gif;

const FRAMES: [[u8; 4]; 2] = [[220, 30, 30, 255], [30, 30, 220, 255]];

fn bench(frames: &[[u8; 4]]) -> Bench {
    let picture = Arc::new(gif(420, 300, frames));
    Bench { picture, ..Bench::new() }
}

fn animated(key: &VariantKey) -> VariantKey {
    VariantKey { motion: Motion::Animated, ..key.clone() }
}

#[tokio::test]
async fn an_animated_variant_is_made_once_and_stands_beside_the_still_one() {
    let mut bench = bench(&FRAMES);
    let still = key(file_id(), "200");
    let moving = animated(&still);
    let made = bench.get(&moving).await.unwrap();
    assert_ne!(bench.get(&still).await.unwrap(), made);
    assert!(webp(made.clone()).windows(4).filter(|kind| kind == b"ANMF").count() == 2);
    assert_ne!(still.etag(), moving.etag());

    assert_eq!(bench.engine.cached(&moving), Some(made.clone()));
    let opened = bench.opened();
    bench.reopen(VariantConfig::default());
    assert_eq!(bench.get(&moving).await.unwrap(), made);
    assert_eq!(bench.opened(), opened);

    bench.engine.remove_file(still.file_id).await.unwrap();
    assert_eq!(bench.engine.cached(&moving), None);
    assert!(!bench.entry(&moving).exists());
}

#[tokio::test]
async fn a_picture_that_does_not_move_has_one_variant_for_both() {
    let mut bench = bench(&FRAMES[..1]);
    let still = key(file_id(), "200");
    let moving = animated(&still);
    let made = bench.get(&moving).await.unwrap();
    assert_eq!(bench.get(&still).await.unwrap(), made);
    assert_eq!(bench.engine.cached(&still), Some(made.clone()));

    // The disk has the picture once, and a note that it is the answer.
    let length = |key: &VariantKey| std::fs::metadata(bench.entry(key)).unwrap().len();
    assert!(length(&moving) < 50 && length(&still) > length(&moving));

    let opened = bench.opened();
    bench.reopen(VariantConfig::default());
    assert_eq!(bench.get(&moving).await.unwrap(), made);
    assert_eq!(bench.opened(), opened);

    // Without the picture the note is worth nothing.
    bench.reopen(VariantConfig::default());
    std::fs::remove_file(bench.entry(&still)).unwrap();
    assert_eq!(bench.get(&moving).await.unwrap(), made);
    assert!(bench.opened() > opened);
}

#[tokio::test]
async fn a_small_animation_passes_through_as_it_is() {
    let bench = bench(&FRAMES);
    let moving = animated(&key(file_id(), "500"));
    let passed = Variant::PassThrough { mime: "image/gif" };
    assert_eq!(bench.get(&moving).await.unwrap(), passed);
}

#[tokio::test]
async fn an_animation_over_a_limit_is_refused_without_a_second_look_and_its_still_is_there() {
    let mut bench = bench(&FRAMES);
    let mut config = VariantConfig::default();
    config.animation.max_frames = 1;
    bench.reopen(config);
    let still = key(file_id(), "200");
    for _ in 0..2 {
        let refused = bench.get(&animated(&still)).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ImageTooLarge);
        assert_eq!(refused.details().limit, Some(1));
    }
    assert_eq!(bench.opened(), 1);
    bench.get(&still).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_who_ask_for_an_animation_at_once_share_one_rendering() {
    let bench = bench(&FRAMES);
    let (moving, gate) = (animated(&key(file_id(), "200")), gate());
    let asked: Vec<_> = (0..20).map(|_| bench.ask(&moving, &gate)).collect();
    bench.until_opened(1).await;
    gate.add_permits(100);
    for handle in asked {
        handle.await.unwrap().unwrap();
    }
    assert_eq!(bench.opened(), 1);
}

#[tokio::test]
async fn an_animation_of_a_blob_that_is_gone_is_not_kept() {
    let bench = bench(&FRAMES);
    let (moving, gate) = (animated(&key(file_id(), "200")), gate());
    let asked = bench.ask(&moving, &gate);
    bench.until_opened(1).await;
    bench.current.store(false, Ordering::SeqCst);
    gate.add_permits(1);
    asked.await.unwrap().unwrap();
    assert_eq!(bench.engine.cached(&moving), None);
    assert!(!bench.entry(&moving).exists());
}
