//! `explain`, on a data directory, over a socket and against a server.

use crate::support::{Bench, Way};

/// The first step of a file's explanation.
fn next(bench: &Bench, id: &str) -> serde_json::Value {
    bench.json(&["explain", id])["next"][0].clone()
}

#[test]
fn a_file_is_explained_from_its_copy_to_its_purge_on_one_screen() {
    for way in [Way::Direct, Way::Url, Way::Socket] {
        let bench = Bench::with_disk(way);
        let bound = ["binding", "create", "--org", "42", "--name", "Acme", "--provider", "disk"];
        bench.ok(&bound);
        let id = bench.upload("hello.txt", "hello", &[]);

        let shown = bench.ok(&["explain", &id]);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(
            lines.len() <= 24 && lines[0].starts_with(&format!("file    {id}: READY")),
            "{shown}"
        );
        assert!(shown.contains("where   disk stores the content (since 20"), "{shown}");
        assert!(shown.contains("why     organization 42 is bound to disk without sync"), "{shown}");
        assert!(shown.contains("next    "), "{shown}");
        assert!(shown.contains("UTC file.uploaded: version 1, READY"), "{shown}");
        assert_eq!(bench.ok(&["explain", &id, "--quiet"]), format!("{id}\n"));

        bench.ok(&["delete", &id]);
        let step = next(&bench, &id);
        assert_eq!((&step["code"], &step["undo"]), (&"purge".into(), &"restore".into()), "{step}");
        let due = step["not_before"].as_str().unwrap();
        assert_eq!(bench.json(&["info", &id])["purge_due_at"], due);
        let shown = bench.ok(&["explain", &id]);
        assert!(shown.contains("to prevent this: filestore restore"), "{shown}");

        bench.ok(&["purge", "run", "--now"]);
        assert_eq!(next(&bench, &id)["code"], "forget_receipt");
        let shown = bench.ok(&["explain", &id]);
        assert!(shown.contains(&format!("file    {id}: purged; organization 42")), "{shown}");
        assert!(shown.contains("1 blob removed from disk"), "{shown}");
        let history = bench.json(&["explain", &id])["history"].clone();
        let types = history["events"].as_array().unwrap().iter().map(|event| &event["type"]);
        assert_eq!(types.collect::<Vec<_>>(), ["file.uploaded", "file.deleted", "file.purged"]);
        assert_eq!(history["whole"], true);
    }
}
