//! `purge receipt`, on a data directory, over a socket and against a server; verified without any.

use crate::support::{Bench, Way};

fn purged(bench: &Bench) -> String {
    let id = bench.upload("hello.txt", "hello", &[]);
    bench.ok(&["delete", &id]);
    bench.ok(&["purge", "run", "--now"]);
    bench.fails(1, &["info", &id]);
    id
}

#[test]
fn a_receipt_is_shown_saved_and_verified_without_a_server() {
    for (way, by) in
        [(Way::Direct, "library"), (Way::Url, "open_mode"), (Way::Socket, "admin_socket")]
    {
        let bench = Bench::new(way);
        let id = purged(&bench);
        let receipt = bench.json(&["purge", "receipt", &id]);
        assert_eq!(receipt["receipt"]["deleted_by"]["kind"], by);
        let shown = bench.ok(&["purge", "receipt", &id]);
        assert!(shown.contains("(5 B) at LOCAL, absent "), "{shown}");
        assert!(
            shown.contains(&by.replace('_', " ")) && shown.contains("everywhere: yes"),
            "{shown}"
        );

        let public_key = bench.ok(&["purge", "receipt-keys", "--quiet"]).trim().to_owned();
        bench.write("receipt.json", receipt.to_string());
        let nowhere = Bench::new(Way::Direct);
        let file = bench.path("receipt.json").display().to_string();
        let verify = ["purge", "receipt", "--verify", &file, "--public-key", &public_key];
        let verified = nowhere.json(&verify);
        assert_eq!(verified["file_id"], id);
        assert_eq!(verified["absent_everywhere"], true);

        let flipped = receipt
            .to_string()
            .replace("\"absent_everywhere\":true", "\"absent_everywhere\":false");
        assert_ne!(flipped, receipt.to_string());
        bench.write("receipt.json", flipped);
        let refused = nowhere.run(&verify);
        assert_eq!(refused.status.code(), Some(1));
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.contains("the receipt is not as it was signed"), "{said}");
    }
}

#[test]
fn a_receipt_before_the_purge_is_missing_with_the_reason() {
    for way in [Way::Direct, Way::Url] {
        let bench = Bench::new(way);
        let id = bench.upload("hello.txt", "hello", &[]);
        let said = bench.fails(1, &["purge", "receipt", &id]);
        assert!(said.contains("the file is not deleted"), "{said}");
        bench.ok(&["delete", &id]);
        let said = bench.fails(1, &["purge", "receipt", &id]);
        assert!(said.contains("not purged yet: the purge is due 20"), "{said}");
        let said = bench.fails(1, &["purge", "receipt", "01JD8QZ4T6X3M2V9B7K5N1R0CE"]);
        assert!(said.contains("check the id"), "{said}");
    }
}

#[test]
fn a_receipt_is_compared_with_the_keys_of_its_store_and_their_ends() {
    let bench = Bench::new(Way::Direct);
    let id = purged(&bench);
    let receipt = bench.json(&["purge", "receipt", &id]).to_string();
    let file = bench.write("receipt.json", &receipt).display().to_string();
    let keys = bench.path("keys.json").display().to_string();
    let verify = ["purge", "receipt", "--verify", &file, "--keys", &keys];
    let save_keys = || {
        let listed = bench.json(&["purge", "receipt-keys"]);
        bench.write("keys.json", listed.to_string());
        listed
    };

    save_keys();
    assert_eq!(bench.json(&verify)["file_id"], id);
    bench.ok(&["purge", "receipt-keys", "--rotate"]);
    let mut listed = save_keys();
    assert_eq!(bench.json(&verify)["file_id"], id, "issued before its key was retired");

    listed[0]["retired_at"] = "2020-01-01T00:00:00.000Z".into();
    bench.write("keys.json", listed.to_string());
    let refused = bench.run(&verify);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("its key was retired 2020-01-01"), "{said}");

    listed.as_array_mut().unwrap().remove(0);
    bench.write("keys.json", listed.to_string());
    let refused = bench.run(&verify);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("a key that is not the store's"), "{said}");

    bench.write("keys.json", "{}");
    let failed = bench.run(&verify);
    let said = String::from_utf8_lossy(&failed.stderr);
    assert_eq!(failed.status.code(), Some(2), "{said}");
    assert!(said.contains("receipt-keys --json"), "{said}");
}

#[test]
fn a_good_receipt_of_a_file_that_a_snapshot_still_has_ends_with_3() {
    let bench = Bench::new(Way::Direct);
    let id = bench.upload("hello.txt", "hello", &[]);
    let snapshots = bench.path("snapshots").display().to_string();
    bench.ok(&["backup", "create", "--to", &snapshots]);
    bench.ok(&["delete", &id]);
    bench.ok(&["purge", "run", "--now"]);

    let receipt = bench.json(&["purge", "receipt", &id]);
    assert_eq!(receipt["receipt"]["absent_everywhere"], false, "{receipt}");
    let file = bench.write("receipt.json", receipt.to_string()).display().to_string();
    let verified = bench.run(&["purge", "receipt", "--verify", &file]);
    let said = String::from_utf8_lossy(&verified.stdout);
    assert_eq!(verified.status.code(), Some(3), "{said}");
    assert!(said.contains("NOT absent everywhere"), "{said}");
}
