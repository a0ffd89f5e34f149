//! `events` and `webhook`, on a data directory, over a socket and against a server.

use crate::support::{Bench, Way};

const WAYS: [Way; 3] = [Way::Direct, Way::Url, Way::Socket];

#[test]
fn events_are_shown_newest_first_and_read_on_behind_one() {
    for way in WAYS {
        let bench = Bench::new(way);
        let id = bench.upload("hello.txt", "hello", &[]);
        bench.ok(&["delete", &id]);

        let shown = bench.ok(&["events", "--types", "file.uploaded,file.deleted"]);
        let rows: Vec<&str> = shown.lines().skip(1).collect();
        assert!(rows[0].contains("file.deleted") && rows[0].contains(&id), "{shown}");
        assert!(rows[1].contains("file.uploaded") && rows[1].contains("READY"), "{shown}");

        let first = bench.ok(&["events", "--after", "start", "--limit", "1", "--json"]);
        let first: serde_json::Value = serde_json::from_str(first.trim()).unwrap();
        assert_eq!(first["data"]["file_id"], id);
        let behind = ["events", "--after", first["id"].as_str().unwrap(), "--quiet"];
        assert_eq!(bench.ok(&behind), format!("{id}\n"));
    }
}

#[test]
fn mistakes_about_events_and_webhooks_name_what_is_allowed() {
    for way in WAYS {
        let bench = Bench::new(way);
        bench.upload("makes-the-data-directory.txt", "hello", &[]);
        let unknown = "01M8F9THP58KCHT8BP16J0F3Q6";
        for (args, message, hint) in [
            (vec!["events", "--types", "file.bogus"], "\"file.bogus\"", "file.uploaded"),
            (vec!["events", "--after", "xx"], "the id of an event", ""),
            (vec!["events", "--limit", "0"], "1 to 1000", "To see all, use --all"),
            (vec!["webhook", "create", "http://example.org/"], "https://", "[webhooks]"),
            (vec!["webhook", "create", "https://a@example.org/"], "no user", ""),
            (vec!["webhook", "show", unknown], "webhook not found", "filestore webhook list"),
            (vec!["webhook", "rotate", "123"], "ULID", "filestore webhook list"),
        ] {
            let said = bench.fails(1, &args);
            assert!(said.contains(message) && said.contains(hint), "{args:?}: {said}");
        }
    }
}

#[test]
fn a_webhook_is_made_changed_and_deleted() {
    for way in WAYS {
        let bench = Bench::new(way);
        bench.upload("makes-the-data-directory.txt", "hello", &[]);
        let made = bench.json(&["webhook", "create", "https://example.org/hook", "--name", "shop"]);
        assert!(made["secret"].as_str().unwrap().starts_with("whsec_"), "{made}");
        let id = made["id"].as_str().unwrap();

        let listed = bench.ok(&["webhook", "list"]);
        assert!(listed.contains("https://example.org/hook") && listed.contains("shop"), "{listed}");
        let rotated = bench.json(&["webhook", "rotate", id, "--overlap", "1h"]);
        assert_ne!(rotated["secret"], made["secret"]);
        assert!(rotated["former_secret_until"].is_string(), "{rotated}");

        bench.ok(&["webhook", "disable", id]);
        assert_eq!(bench.json(&["webhook", "show", id])["state"], "disabled");
        bench.ok(&["webhook", "enable", id, "--from", "end"]);
        // "failing" if the name was not found meanwhile.
        assert_ne!(bench.json(&["webhook", "show", id])["state"], "disabled");
        let shown = bench.ok(&["webhook", "show", id]);
        assert!(!shown.contains("whsec_"), "the secret is shown once: {shown}");
        bench.ok(&["webhook", "delete", id]);
        assert_eq!(bench.json(&["webhook", "list"]), serde_json::json!([]));
    }
}
