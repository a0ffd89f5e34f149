//! The modes of new files and directories: private in a store, from the user's umask elsewhere. Also the directories
//! that commands refuse.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Bench, Way, picture, text};

/// Runs a command under a mask.
fn under(mask: &str, bench: &Bench, args: &[&str]) -> Output {
    let script = format!("umask {mask}; exec \"$0\" \"$@\"");
    let output = Command::new("/bin/sh")
        .args(["-c", &script])
        .arg(assert_cmd::cargo::cargo_bin!("filestore"))
        .args(args)
        .args(bench.target())
        .current_dir(bench.path(""))
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    output
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o777
}

/// Returns the modes of all files below a directory, and of all directories.
fn modes(directory: &Path) -> (Vec<u32>, Vec<u32>) {
    let (mut files, mut directories) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            directories.push(mode(&path));
            let (below, deeper) = modes(&path);
            files.extend(below);
            directories.extend(deeper);
        } else {
            files.push(mode(&path));
        }
    }
    (files, directories)
}

fn all_are(modes: &[u32], expected: u32) -> bool {
    !modes.is_empty() && modes.iter().all(|mode| *mode == expected)
}

#[test]
fn a_store_and_its_providers_are_private_and_what_is_handed_over_goes_by_the_users_mask() {
    for (mask, file, directory) in
        [("022", 0o644, 0o755), ("027", 0o640, 0o750), ("0", 0o666, 0o777)]
    {
        let bench = Bench::with_disk(Way::Direct);
        bench.write("photo.bmp", picture(400, 300));
        let bind = ["binding", "create", "--org", "42", "--name", "Acme", "--provider", "disk"];
        under(mask, &bench, &bind);
        let put = ["upload", "photo.bmp", "--org", "42", "--sub", "s", "--quiet"];
        let id = text(&under(mask, &bench, &put).stdout).trim().to_owned();

        for private in [&bench.path("disk"), bench.data_dir()] {
            let (files, directories) = modes(private);
            assert!(all_are(&files, 0o600), "{mask}: {} {files:?}", private.display());
            assert!(all_are(&directories, 0o700), "{mask}: {} {directories:?}", private.display());
        }

        under(mask, &bench, &["get", &id, "-o", "got.bmp"]);
        under(mask, &bench, &["variant", &id, "200", "-o", "small.webp"]);
        under(mask, &bench, &["sheet", &id, "-o", "sheet.webp"]);
        for made in ["got.bmp", "small.webp", "sheet.webp"] {
            assert_eq!(mode(&bench.path(made)), file, "{mask}: {made}");
        }
        under(mask, &bench, &["organization", "export", "42", "--to", "out/of/42"]);
        assert_eq!(mode(&bench.path("out")), directory, "{mask}");
        let (files, directories) = modes(&bench.path("out"));
        assert!(all_are(&files, file), "{mask}: {files:?}");
        assert!(all_are(&directories, directory), "{mask}: {directories:?}");

        let kept = bench.path("kept");
        under(mask, &bench, &["backup", "create", "--to", kept.to_str().unwrap()]);
        let (files, directories) = modes(&kept);
        assert!(all_are(&files, 0o600) && all_are(&directories, 0o700), "{mask}: {files:?}");
    }
}

#[test]
fn a_data_directory_that_others_may_write_to_is_refused_with_the_way_to_mend_it() {
    let bench = Bench::new(Way::Direct);
    bench.upload("a.txt", "a", &[]);
    fs::set_permissions(bench.data_dir(), Permissions::from_mode(0o777)).unwrap();
    let said = bench.fails(2, &["list"]);
    let mend = format!("chmod 700 {}", bench.data_dir().display());
    assert!(said.contains(&mend), "{said}");

    fs::set_permissions(bench.data_dir(), Permissions::from_mode(0o755)).unwrap();
    let warned = bench.command(&["list"]).env("FILESTORE_LOG", "warn").output().unwrap();
    assert!(warned.status.success());
    assert!(text(&warned.stderr).contains("chmod 700"), "{}", text(&warned.stderr));
}

#[test]
fn a_backup_destination_that_others_may_write_to_is_warned_of() {
    let bench = Bench::new(Way::Direct);
    bench.upload("a.txt", "a", &[]);
    let kept = bench.path("kept");
    let create = ["backup", "create", "--to", kept.to_str().unwrap()];
    bench.ok(&create);
    for (mode, more, is_warned) in
        [(0o700, &[][..], false), (0o777, &[], true), (0o777, &["--quiet"], false)]
    {
        fs::set_permissions(&kept, Permissions::from_mode(mode)).unwrap();
        let output = bench.run(&[&create[..], more].concat());
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(
            said.contains("others may write to it"),
            is_warned,
            "{mode:o}, {more:?}: {said}"
        );
    }
}

#[test]
fn root_does_not_work_on_the_directory_of_another_account() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can give a directory to another account");
        return;
    }

    let bench = Bench::new(Way::Direct);
    bench.upload("a.txt", "a", &[]);
    let kept = bench.path("kept");
    let kept = kept.to_str().unwrap();
    bench.ok(&["backup", "create", "--to", kept]);
    chown(bench.data_dir(), Some(54_321), None).unwrap();
    let before = fs::read_dir(bench.data_dir()).unwrap().count();
    for args in [
        &["list"][..],
        &["upload", "a.txt", "--org", "42", "--sub", "s"],
        &["key", "create", "--name", "n", "--org", "*", "--scope", "admin"],
        &["backup", "create", "--to", kept],
    ] {
        let said = bench.fails(2, args);
        assert!(said.contains("sudo -u '#54321' filestore"), "{args:?}: {said}");
    }
    assert_eq!(fs::read_dir(bench.data_dir()).unwrap().count(), before);

    // Nor restores into it.
    let empty = bench.path("empty");
    fs::create_dir(&empty).unwrap();
    chown(&empty, Some(54_321), None).unwrap();
    let restore = ["backup", "restore", "--all", "--from", kept, "--data-dir"];
    let mut command = crate::support::filestore(&bench.path(""));
    let output = command.args(restore).arg(&empty).output().unwrap();
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("sudo -u '#54321'"), "{}", text(&output.stderr));
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);
}
