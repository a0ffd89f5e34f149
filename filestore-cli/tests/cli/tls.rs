//! Servers with a certificate of a private authority, and servers without TLS.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use filestore_server::listen::TlsFiles;
use rcgen::{CertifiedKey, generate_simple_self_signed};

use crate::support::{Bench, Way, filestore, text};

/// Starts a server with a certificate for `localhost`. Returns its URL and the certificate.
fn private_server(keys: &Path) -> (Bench, String, PathBuf) {
    let CertifiedKey { cert, key_pair } =
        generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, key) = (keys.join("cert.pem"), keys.join("key.pem"));
    std::fs::write(&certificate, cert.pem()).unwrap();
    std::fs::write(&key, key_pair.serialize_pem()).unwrap();
    let files = TlsFiles::new(&certificate, &key);
    let bench = Bench::with(Way::Url, |config| config.tls = Some(files));
    let url = bench.url().replace("127.0.0.1", "localhost");
    (bench, url, certificate)
}

#[test]
fn a_private_certificate_is_refused_in_plain_words_and_accepted_with_its_file() {
    let keys = tempfile::tempdir().unwrap();
    let (_bench, url, certificate) = private_server(keys.path());
    assert!(url.starts_with("https://localhost:"), "{url}");
    let health = || {
        let mut command = filestore(keys.path());
        command.args(["health", "--server", &url]);
        command
    };

    let refused = health().output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert_eq!(said.lines().count(), 2, "one error, one hint, and no log: {said}");
    assert!(said.contains("certificate") && said.contains("--ca-cert"), "{said}");
    assert!(!said.contains('\u{1b}'), "{said:?}");

    health().arg("--ca-cert").arg(&certificate).assert().success();
    health().env("FILESTORE_CA_CERT", &certificate).assert().success();
    let missing = health().args(["--ca-cert", "missing.pem"]).output().unwrap();
    assert!(text(&missing.stderr).contains("cannot read the certificates in missing.pem"));
    std::fs::write(keys.path().join("empty.pem"), "").unwrap();
    let empty = health().args(["--ca-cert", "empty.pem"]).output().unwrap();
    let said = text(&empty.stderr);
    assert!(said.contains("cannot read the certificates in empty.pem"), "{said}");
    assert!(said.contains("contains no certificate"), "{said}");
}

#[test]
fn https_to_a_server_without_tls_says_so() {
    let bench = Bench::new(Way::Url);
    let url = bench.url().replace("http://", "https://");
    let output = filestore(&bench.path("")).args(["health", "--server", &url]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("does not use TLS") && said.contains("use http://"), "{said}");
}

#[test]
fn http_to_a_server_with_tls_says_so() {
    let keys = tempfile::tempdir().unwrap();
    let (_bench, url, _) = private_server(keys.path());
    let url = url.replace("https://", "http://");
    let output = filestore(keys.path()).args(["health", "--server", &url]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("does not speak HTTP") && said.contains("use https://"), "{said}");
}

#[test]
fn the_log_has_no_colours_in_a_file() {
    let bench = Bench::new(Way::Direct);
    bench.upload("a.txt", "a", &[]);
    // A warning of the store, so that there is a line in the log.
    std::fs::set_permissions(bench.data_dir(), Permissions::from_mode(0o755)).unwrap();
    let output = bench.command(&["list"]).env("FILESTORE_LOG", "warn").output().unwrap();
    let log = text(&output.stderr);
    assert!(log.contains("WARN") && !log.contains('\u{1b}'), "{log:?}");
}
