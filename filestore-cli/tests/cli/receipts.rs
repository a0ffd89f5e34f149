//! `purge receipt`, on a data directory, over a socket and against a server; verified without any.

use std::time::Duration;

use crate::support::{Bench, Way};

fn purged(bench: &Bench) -> String {
    let id = bench.upload("hello.txt", "hello", &[]);
    bench.ok(&["delete", &id]);
    // A server's own run may be at it already.
    let is_gone = (0..100).any(|_| {
        bench.ok(&["purge", "run"]);
        !bench.run(&["info", &id]).status.success()
    });
    assert!(is_gone, "the purge ends");
    id
}

#[test]
fn a_receipt_is_shown_saved_and_verified_without_a_server() {
    for (way, by) in
        [(Way::Direct, "library"), (Way::Url, "open_mode"), (Way::Socket, "admin_socket")]
    {
        let bench = Bench::with(way, |config| config.store.purge_grace = Duration::ZERO);
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
