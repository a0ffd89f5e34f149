//! Pictures as weapons, each against the renderer in a process of its own, whose memory is measured.
//! The same ones go over HTTP in the workspace's integration tests.

use std::fs::File;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::process::Command;
use std::time::Duration;

use filestore_pictures::steps::{Deadline, NoSpare, Small, assess};
use filestore_pictures::{ErrorKind, Fit, Rendered, Result, Settings, Wanted, animate};

mod arsenal;
mod damage;
mod moving;
#[expect(dead_code, reason = "the tests of the crate use all of it")]
#[path = "../../src/fixtures/animations.rs"]
mod animations;
#[path = "../../src/fixtures/pictures.rs"]
mod pictures;
#[expect(dead_code, reason = "the tests of the crate use all of it")]
#[path = "../../src/fixtures/tiffs.rs"]
mod tiffs;

use arsenal::{Answer, Weapon, arsenal};

/// Tells the child which file to make a variant of.
const TARGET: &str = "FILESTORE_WEAPON";
/// Tells the child to make an animated variant.
const MOVING: &str = "FILESTORE_WEAPON_MOVES";

/// The most bytes of a picture that are kept for further sizes, as a store keeps them.
const KEPT_BYTES: u64 = 8 << 20;

/// The frames that are wanted of a weapon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Frames {
    First,
    All,
}

#[test]
fn every_weapon_is_answered_within_its_memory() {
    fire(&arsenal(), Frames::First);
}

#[test]
fn every_weapon_is_answered_within_its_memory_where_all_frames_are_wanted() {
    fire(&moving::weapons(), Frames::All);
}

fn fire(weapons: &[Weapon], frames: Frames) {
    let directory = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for weapon in weapons {
        let path = directory.path().join("weapon");
        File::create(&path).unwrap().write_all(&weapon.bytes).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture"])
            .env(TARGET, &path)
            .env(MOVING, if frames == Frames::All { "1" } else { "0" })
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

/// Makes one picture, as the child of the test above; does nothing else.
#[test]
fn child() {
    let Some(path) = std::env::var_os(TARGET) else { return };
    // Memory is looked at here: no answer may depend on how busy the machine is.
    let mut settings = Settings::default();
    settings.limits.deadline = Duration::from_mins(10);
    settings.limits.animation.cpu = Duration::from_mins(10);

    // A first, harmless picture, so that the memory every process takes is there before.
    let harmless = pictures::jpeg(300, 300, &pictures::photo(300, 300));
    let mut first = tempfile::tempfile().unwrap();
    first.write_all(&harmless).unwrap();
    make(&first, Frames::First, &settings).unwrap();
    let all = std::env::var(MOVING).is_ok_and(|moving| moving == "1");
    let frames = if all { Frames::All } else { Frames::First };

    let before = peak_kib();
    let begun = std::time::Instant::now();
    let answer = match make(&File::open(path).unwrap(), frames, &settings) {
        Ok(Rendered::WebP(_)) => Answer::Variant,
        Ok(Rendered::PassThrough { mime }) => panic!("{mime} passed through"),
        Err(error) => match error.kind() {
            ErrorKind::TooLarge => Answer::TooLarge,
            ErrorKind::Corrupt => Answer::Corrupt,
            ErrorKind::NotAnImage | ErrorKind::Unsupported => Answer::NotAnImage,
            other => panic!("{other:?}: {error:?}"),
        },
    };

    let grown = (peak_kib() - before).div_ceil(1024);
    println!("report: {answer:?} {grown} MiB in {} ms", begun.elapsed().as_millis());
}

/// Makes a picture in the steps of a store: assess, render, reduce for further sizes.
fn make(file: &File, frames: Frames, settings: &Settings) -> Result<Rendered> {
    let wanted = Wanted::new(200, Fit::Cover);
    if frames == Frames::All {
        return animate(file, wanted, settings);
    }

    let work = assess(file, &[wanted], Small::PassesThrough, &settings.limits)?;
    let deadline = Deadline::after(settings.limits.deadline);
    let mut made = work.pass_through();
    let retained = work.run(file, settings.quality, deadline, &NoSpare, |_, one| {
        made = one;
        ControlFlow::Continue(())
    })?;
    drop(retained.and_then(|retained| retained.reduce_to(KEPT_BYTES)));
    Ok(made)
}

/// Returns the most memory this process ever held, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
