//! Tables on a narrow terminal, and whole elsewhere. `COLUMNS` stands for the terminal.

use crate::support::{Bench, Way, text};

fn list_within(columns: &str, bench: &Bench, more: &[&str]) -> String {
    let args = [&["list"], more].concat();
    let output = bench.command(&args).env("COLUMNS", columns).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn width(table: &str) -> usize {
    table.lines().map(|line| line.chars().count()).max().unwrap()
}

#[test]
fn a_table_fits_the_terminal_and_is_whole_in_a_file() {
    let bench = Bench::new(Way::Direct);
    let name = format!("{}.bin", "a-very-long-name-".repeat(6));
    let id = bench.upload(&name, [0xFF, 0x00, 0xFE], &["--type", "application/octet-stream"]);

    for (columns, shown, hidden) in [
        ("100", &["NAME", "TYPE", "SYNC", "a-very-l", "…", "applicat"][..], &["PURGE"][..]),
        ("80", &["NAME", "STATUS", "UPDATED", "…"], &["TYPE", "SYNC"]),
        ("50", &["NAME", "…"], &["TYPE", "SYNC", "UPDATED"]),
    ] {
        let table = list_within(columns, &bench, &["--org", "42"]);
        assert!(width(&table) <= columns.parse().unwrap(), "{table}");
        assert!(table.contains(&id), "an id is never cut: {table}");
        for text in shown {
            assert!(table.contains(text), "{columns}: {text} in {table}");
        }
        for text in hidden {
            assert!(!table.contains(text), "{columns}: {text} in {table}");
        }
    }

    let whole = bench.ok(&["list", "--org", "42"]);
    assert!(whole.contains(&name) && whole.contains("application/octet-stream"), "{whole}");
}

#[test]
fn a_list_of_several_organizations_shows_them() {
    let bench = Bench::new(Way::Direct);
    bench.upload("a.txt", "a", &[]);
    bench.ok(&["upload", "a.txt", "--org", "acme", "--sub", "s"]);
    let all = bench.ok(&["list"]);
    assert!(all.contains("  ORG   NAME") && all.contains("  acme  a.txt"), "{all}");
    assert!(all.contains("  42    a.txt"), "{all}");
    let one = bench.ok(&["list", "--org", "acme"]);
    assert!(!one.contains("ORG") && !one.contains("acme"), "{one}");
}

#[test]
fn further_pages_keep_the_columns_of_the_first() {
    let bench = Bench::new(Way::Direct);
    bench.upload("the-oldest-file-has-a-very-long-name-that-does-not-fit.txt", "x", &[]);
    bench.upload("b.txt", "x", &[]);
    bench.upload("c.txt", "x", &[]);
    let table = list_within("72", &bench, &["--all", "--limit", "2"]);
    assert!(width(&table) <= 72 && table.contains('…'), "{table}");
    assert!(table.contains("UPDATED") && !table.contains("STATUS"), "{table}");
    let cells: Vec<_> = table.lines().map(|line| line.split_whitespace().count()).collect();
    assert_eq!(cells, [7, 7, 7, 7], "{table}");
}
