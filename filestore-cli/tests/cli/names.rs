//! Names of every kind through the command line: up, into the listing on the terminal, and down again as a
//! file of this machine.

use std::collections::BTreeSet;

use crate::support::{Bench, Way};

/// Names that `--name` takes, with the name of the file that `get` makes of each; `None` for one that
/// leaves nothing to name a file by, so that the id does.
const NAMES: [(&str, Option<&str>); 22] = [
    ("say \"hi\" and 'ho'.txt", Some("say \"hi\" and 'ho'.txt")),
    ("back\\slash.txt", Some("slash.txt")),
    ("../../../etc/passwd", Some("passwd")),
    ("/etc/shadow", Some("shadow")),
    ("👩‍👩‍👧 👍🏽.png", Some("👩‍👩‍👧 👍🏽.png")),
    ("gr\u{fc}\u{df}e.txt", Some("gr\u{fc}\u{df}e.txt")),
    ("gru\u{308}\u{df}e.txt", Some("gru\u{308}\u{df}e.txt")),
    ("\u{200f}تقرير\u{200e}.pdf", Some("\u{200f}تقرير\u{200e}.pdf")),
    ("photo\u{202e}gpj.exe", Some("photo_gpj.exe")),
    ("\u{2067}abc\u{2069}.txt", Some("_abc_.txt")),
    ("CON", Some("CON")),
    ("nul.txt", Some("nul.txt")),
    (".htaccess", Some("_htaccess")),
    ("..", None),
    ("...", None),
    ("~", Some("~")),
    ("100% %41 %2e%2e%2f.txt", Some("100% %41 %2e%2e%2f.txt")),
    ("-rf", Some("_-rf")),
    ("--output=x", Some("_--output=x")),
    ("$(reboot) `id` | & ; < > * ?", Some("$(reboot) `id` | & ; < > * ?")),
    ("'; DROP TABLE files; --", Some("'; DROP TABLE files; --")),
    ("dir/", None),
];

/// The files in the directory `dir` of the bench.
fn files_in(bench: &Bench, dir: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(bench.path(dir)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Insists on text that no terminal obeys, and that reads in the order of its characters.
fn assert_harmless(shown: &str) {
    let obeyed = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!shown.contains(obeyed), "{shown:?}");
}

fn any_name_goes_up_is_listed_and_comes_down(bench: &Bench) {
    bench.write("bytes", "bytes");
    for (number, (name, here)) in NAMES.into_iter().enumerate() {
        let option = format!("--name={name}");
        let place = ["--org", "42", "--sub", "s"];
        let uploaded = bench.json(&[&["upload", "bytes", &option][..], &place].concat());
        assert_eq!(uploaded[0]["original_name"], name);

        let id = uploaded[0]["file_id"].as_str().unwrap();
        assert_harmless(&bench.ok(&["info", id]));
        let dir = format!("down-{number}");
        std::fs::create_dir(bench.path(&dir)).unwrap();
        assert_harmless(&bench.ok(&["get", id, "-o", &dir]));
        let expected = BTreeSet::from([here.unwrap_or(id).to_owned()]);
        assert_eq!(files_in(bench, &dir), expected, "{name:?}");
    }

    assert_harmless(&bench.ok(&["list", "--all"]));
    assert_eq!(bench.count(), NAMES.len());
}

fn a_name_of_255_characters_comes_down_under_its_end(bench: &Bench) {
    let name = format!("{}.txt", "é".repeat(251));
    let id = bench.upload("a.txt", "x", &["--name", &name]);
    std::fs::create_dir(bench.path("down")).unwrap();
    bench.ok(&["get", &id, "-o", "down"]);
    let files = files_in(bench, "down");
    let file = files.first().unwrap();
    assert!(name.ends_with(file) && file.ends_with("éé.txt") && file.len() <= 255, "{file}");
}

fn a_name_with_a_control_character_is_refused(bench: &Bench) {
    bench.write("bytes", "bytes");
    for name in ["a\r\nb", "a\u{1b}[2Jb", "a\u{7f}b", "a\u{9b}b", "a\tb"] {
        let option = format!("--name={name}");
        let said = bench.fails(1, &["upload", "bytes", &option, "--org", "42", "--sub", "s"]);
        assert!(said.contains("original_name"), "{said}");
        assert_harmless(&said);
    }
    assert_eq!(bench.count(), 0);
}

fn the_type_follows_from_the_bytes_and_the_name(bench: &Bench) {
    for (file, bytes, mime_type) in [
        ("a.csv", &b"BM;Preis\n1;2\n"[..], "text/csv"),
        ("a.txt", b"GIF89a is a format", "text/plain"),
        ("a.apk", b"PK\x03\x04 an archive", "application/vnd.android.package-archive"),
        ("a.zip", b"PK\x03\x04 an archive", "application/zip"),
        ("a.xls", b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1", "application/vnd.ms-excel"),
        ("a.gpx", b"<?xml version=\"1.0\"?><gpx/>", "application/gpx+xml"),
    ] {
        bench.write(file, bytes);
        let record = bench.json(&["upload", file, "--org", "42", "--sub", "s"]);
        assert_eq!(record[0]["mime_type"], mime_type, "{file}");
        let given = ["upload", file, "--org", "42", "--sub", "s", "--type", "a/b"];
        assert_eq!(bench.json(&given)[0]["mime_type"], "a/b", "{file}");
    }
}

/// Files as a directory may hold them; their names are bytes, and nobody has checked them.
#[cfg(target_os = "linux")]
fn local_files_of_any_name_go_up(bench: &Bench) {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    // A form replaces what a multipart header cannot carry; a directory drops it.
    for (file, stored, or) in [
        (&b"say \"hi\".txt"[..], "say \"hi\".txt", ""),
        (b"back\\slash.txt", "back\\slash.txt", ""),
        (b"100% %22.txt", "100% %22.txt", ""),
        (b"Icon\r", "Icon", ""),
        (b"a\x1b]0;owned\x07b", "a]0;ownedb", "a_]0;owned_b"),
        (b"gr\xF6\xDFe \x80", "größe €", ""),
        (".hidden 🎉".as_bytes(), ".hidden 🎉", ""),
    ] {
        std::fs::write(bench.path("").join(OsStr::from_bytes(file)), "x").unwrap();
        let mut command = bench.command(&["upload", "--org", "42", "--sub", "s", "--json"]);
        let output = command.arg("--").arg(OsStr::from_bytes(file)).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let name = record[0]["original_name"].as_str().unwrap();
        let is_replaced = bench.way == Way::Url && !or.is_empty();
        assert_eq!(name, if is_replaced { or } else { stored });
    }

    // A byte that is no character, neither in UTF-8 nor in Windows-1252.
    let file = OsStr::from_bytes(b"not \x81 text");
    std::fs::write(bench.path("").join(file), "x").unwrap();
    let arguments = ["upload", "--org", "42", "--sub", "s"];
    let output = bench.command(&arguments).arg("--").arg(file).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("neither UTF-8"), "{said}");
    let output = bench.command(&arguments).args(["--name", "n", "--"]).arg(file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

macro_rules! in_two_ways {
    ($($name:ident)*) => {
        mod direct { $(#[test] fn $name() { super::$name(&crate::support::Bench::new(super::Way::Direct)); })* }
        mod server { $(#[test] fn $name() { super::$name(&crate::support::Bench::new(super::Way::Url)); })* }
    };
}

in_two_ways! {
    any_name_goes_up_is_listed_and_comes_down
    a_name_of_255_characters_comes_down_under_its_end
    a_name_with_a_control_character_is_refused
    the_type_follows_from_the_bytes_and_the_name
}

#[cfg(target_os = "linux")]
#[test]
fn local_files_of_any_name_go_up_to_a_server() {
    local_files_of_any_name_go_up(&Bench::new(Way::Url));
}

#[cfg(target_os = "linux")]
#[test]
fn local_files_of_any_name_go_into_a_directory() {
    local_files_of_any_name_go_up(&Bench::new(Way::Direct));
}
