//! Servers with a certificate of a private authority, and servers without TLS.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use filestore_server::listen::TlsFiles;
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};

use crate::support::{Bench, Way, filestore, text};

/// Starts a server with a certificate for `localhost`. Returns its URL and the certificate.
fn private_server(keys: &Path) -> (Bench, String, PathBuf) {
    server_with(keys, IsCa::NoCa)
}

/// Starts a server with its own certificate, which is for servers or for authorities.
fn server_with(keys: &Path, kind: IsCa) -> (Bench, String, PathBuf) {
    let key_pair = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.is_ca = kind;
    let cert = params.self_signed(&key_pair).unwrap();
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
fn a_certificate_for_authorities_is_explained_although_ca_cert_names_it() {
    let keys = tempfile::tempdir().unwrap();
    let authority = IsCa::Ca(BasicConstraints::Unconstrained);
    let (_bench, url, certificate) = server_with(keys.path(), authority);
    let mut health = filestore(keys.path());
    let output = health.args(["health", "--server", &url, "--ca-cert"]).arg(certificate).output();
    let said = text(&output.unwrap().stderr);
    assert!(said.contains("certificate of an authority") && said.contains("CA:FALSE"), "{said}");
    assert!(!said.contains("trust it with"), "{said}");
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
