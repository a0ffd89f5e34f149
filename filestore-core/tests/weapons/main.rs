//! Pictures as weapons, each against the engine in a process of its own, whose memory is measured.
//! The same ones go over HTTP in the workspace's integration tests.

use std::fs::File;
use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

use filestore_core::domain::clock::Timestamp;
use filestore_core::domain::config::VariantConfig;
use filestore_core::domain::id::{FileId, Sha256};
use filestore_core::variant::{
    Fit, Motion, Source, Variant, VariantEngine, VariantKey, VariantSize,
};
use filestore_core::{Error, ErrorKind, Result};

mod arsenal;
mod damage;
mod moving;
#[expect(dead_code, reason = "the tests of the core use all of it")]
#[path = "../../src/variant/fixtures/animations.rs"]
mod animations;
#[path = "../../src/variant/fixtures/pictures.rs"]
mod pictures;

use arsenal::{Answer, Weapon, arsenal};

/// Tells the child which file to make a variant of.
const TARGET: &str = "FILESTORE_WEAPON";
/// Tells the child to make an animated variant.
const MOVING: &str = "FILESTORE_WEAPON_MOVES";

#[test]
fn every_weapon_is_answered_within_its_memory() {
    fire(&arsenal(), Motion::Still);
}

#[test]
fn every_weapon_is_answered_within_its_memory_where_all_frames_are_wanted() {
    fire(&moving::weapons(), Motion::Animated);
}

fn fire(weapons: &[Weapon], motion: Motion) {
    let directory = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for weapon in weapons {
        let path = directory.path().join("weapon");
        File::create(&path).unwrap().write_all(&weapon.bytes).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture"])
            .env(TARGET, &path)
            .env(MOVING, if motion == Motion::Animated { "1" } else { "0" })
            .output()
            .unwrap();

        let text = String::from_utf8_lossy(&child.stdout);
        let report =
            text.lines().find_map(|line| line.split_once("report: ")).map(|(_, report)| report);
        let report = report.unwrap_or_else(|| panic!("{}: {text}{child:?}", weapon.name));

        println!("{:50} {:9} bytes  {report}", weapon.name, weapon.bytes.len());
        let (answer, rest) = report.split_once(' ').unwrap();
        let grown: u64 = rest.split(' ').next().unwrap().parse().unwrap();
        if answer != format!("{:?}", weapon.answer) || grown > weapon.memory_mib {
            wrong.push(format!(
                "{}: {report}; {:?} within {}",
                weapon.name, weapon.answer, weapon.memory_mib
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Makes one variant, as the child of the test above; does nothing else.
#[tokio::test]
async fn child() {
    let Some(path) = std::env::var_os(TARGET) else { return };
    let directory = tempfile::tempdir().unwrap();
    // Memory is looked at here: no answer may depend on how busy the machine is.
    let mut config = VariantConfig::default();
    config.deadline = Duration::from_mins(10);
    config.animation.cpu = Duration::from_mins(10);
    let engine = VariantEngine::open(directory.path(), config).unwrap();

    // A first, harmless picture, so that the memory every process takes is there before.
    let harmless = pictures::jpeg(300, 300, &pictures::photo(300, 300));
    let mut first = tempfile::tempfile().unwrap();
    first.write_all(&harmless).unwrap();
    make(&engine, first, Motion::Still).await.unwrap();
    let motion = Motion::from(std::env::var(MOVING).is_ok_and(|moving| moving == "1"));

    let before = peak_kib();
    let begun = std::time::Instant::now();
    let answer = match make(&engine, File::open(path).unwrap(), motion).await {
        Ok(Variant::WebP(_)) => Answer::Variant,
        Ok(Variant::PassThrough { mime }) => panic!("{mime} passed through"),
        Err(error) => match error.kind() {
            ErrorKind::ImageTooLarge => Answer::TooLarge,
            ErrorKind::CorruptImage => Answer::Corrupt,
            ErrorKind::NotAnImage => Answer::NotAnImage,
            other => panic!("{other:?}: {error:?}"),
        },
    };

    let grown = (peak_kib() - before).div_ceil(1024);
    println!("report: {answer:?} {grown} MiB in {} ms", begun.elapsed().as_millis());
}

async fn make(engine: &VariantEngine, file: File, motion: Motion) -> Result<Variant> {
    let key = VariantKey {
        organization_id: "1".parse().unwrap(),
        file_id: FileId::generate(Timestamp::now()),
        sha256: Sha256([0; 32]),
        size: VariantSize::try_from(200)?,
        fit: Fit::Cover,
        motion,
    };
    let open = move || std::future::ready(file.try_clone().map_err(|e| Error::io("opening", e)));
    engine.get(key, Source::new(open, || async { true })).await
}

/// Returns the most memory this process ever held, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
