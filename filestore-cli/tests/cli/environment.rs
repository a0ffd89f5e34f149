//! The environment, and errors of the command line itself.

use serde_json::Value;

use crate::support::{Bench, Way, filestore, text};

#[test]
fn the_environment_names_the_data_directory_and_options_beat_it() {
    let bench = Bench::new(Way::Direct);
    let id = bench.upload("a.txt", "a", &[]);
    let run = |args: &[&str], url: Option<&str>| {
        let mut command = filestore(&bench.path(""));
        command.env("FILESTORE_DATA_DIR", bench.data_dir()).args(args);
        command.envs(url.map(|url| ("FILESTORE_URL", url))).output().unwrap()
    };
    assert_eq!(text(&run(&["list", "--quiet"], None).stdout).trim(), id);

    let said = text(&run(&["list", "--server", "http://127.0.0.1:1"], None).stderr);
    assert!(said.contains("cannot connect to http://127.0.0.1:1"), "{said}");

    let both = run(&["list"], Some("http://127.0.0.1:1"));
    assert_eq!(both.status.code(), Some(2));
    let said = text(&both.stderr);
    assert!(said.contains("FILESTORE_URL and FILESTORE_DATA_DIR are both set"), "{said}");
    let directory = bench.data_dir().to_str().unwrap();
    let chosen = run(&["list", "--quiet", "--data-dir", directory], Some("http://127.0.0.1:1"));
    assert_eq!(text(&chosen.stdout).trim(), id);
}

#[test]
fn the_environment_can_name_the_place_of_new_files_and_options_beat_it() {
    let bench = Bench::new(Way::Direct);
    bench.write("a.txt", "a");
    let placed = |args: &[&str]| {
        let mut command = bench.command(&["upload", "a.txt", "--json"]);
        command.args(args).env("FILESTORE_ORG", "acme").env("FILESTORE_SUB", "docs");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        let records: Value = serde_json::from_slice(&output.stdout).unwrap();
        ["organization_id", "sub_system"].map(|name| records[0][name].as_str().unwrap().to_owned())
    };
    assert_eq!(placed(&[]), ["acme", "docs"]);
    assert_eq!(placed(&["--org", "other"]), ["other", "docs"]);

    let all = bench.command(&["list", "--quiet"]).env("FILESTORE_ORG", "acme").output().unwrap();
    assert_eq!(text(&all.stdout).lines().count(), 2, "a list is not narrowed in silence");
}

#[test]
fn a_key_can_come_from_a_file() {
    let bench = Bench::new(Way::Url);
    let made = bench.json(&["key", "create", "--org", "*", "--scope", "admin"]);
    let key = made["key"].as_str().unwrap();
    bench.write("good.key", format!("{key}\n"));
    bench.write("bad.key", "two words");
    let said = bench.fails(1, &["list"]);
    assert!(said.contains("--key-file FILE or FILESTORE_KEY_FILE"), "{said}");

    bench.ok(&["list", "--key-file", "good.key"]);
    let by_variable = |name: &str, value: &str| {
        bench.command(&["list"]).env(name, value).output().unwrap().status.code()
    };
    assert_eq!(by_variable("FILESTORE_KEY_FILE", "good.key"), Some(0));
    assert_eq!(by_variable("FILESTORE_KEY", key), Some(0));
    assert_eq!(by_variable("FILESTORE_KEY_FILE", "bad.key"), Some(2));

    let said = bench.fails(2, &["list", "--key-file", "missing.key"]);
    assert!(said.contains("cannot read the API key in missing.key"), "{said}");
    let said = bench.fails(2, &["list", "--key-file", "bad.key"]);
    assert!(said.contains("one API key") && !said.contains("two words"), "{said}");
    bench.fails(2, &["list", "--key-file", "good.key", "--key", key]);
}

#[test]
fn wrong_usage_is_json_if_json_is_asked_for() {
    let work = tempfile::tempdir().unwrap();
    for (args, message, hint) in [
        (&["upload", "a.txt", "--json"][..], "--org <ID>", "Usage: filestore upload"),
        (&["--json", "list", "--orgg", "1"], "unexpected argument '--orgg'", "'--org'"),
        (&["--json", "--server", "http://h", "--data-dir", "d", "list"], "one target", "Usage"),
        (&["--json", "binding", "list", "--org", "acme"], "'acme'", "--help"),
    ] {
        let output = filestore(work.path()).args(args).output().unwrap();
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(2), ""));
        let said = text(&output.stderr);
        let error: Value = serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"));
        let error = &error["error"];
        assert!(error["message"].as_str().unwrap().contains(message), "{said}");
        assert!(error["hint"].as_str().unwrap().contains(hint), "{said}");
        assert_eq!(error["code"], Value::Null);
    }
    let plain = filestore(work.path()).args(["list", "--orgg", "1"]).output().unwrap();
    assert!(text(&plain.stderr).starts_with("error: unexpected argument"));
    let help = filestore(work.path()).args(["list", "--help", "--json"]).output().unwrap();
    assert!(help.status.success() && text(&help.stdout).contains("Usage: filestore list"));
}

#[test]
fn a_wrong_server_is_told_with_the_right_one() {
    let bench = Bench::new(Way::Url);
    let said =
        |args: &[&str]| text(&filestore(&bench.path("")).args(args).output().unwrap().stderr);
    let host = bench.url().strip_prefix("http://").unwrap().to_owned();
    let without_scheme = said(&["list", "--server", &host]);
    assert!(without_scheme.contains(&format!("use --server http://{host}")), "{without_scheme}");

    let id = "01JD8QZ4T6X3M2V9B7K5N1R0CE";
    let with_a_path = said(&["info", id, "--server", &format!("{}/foo", bench.url())]);
    assert!(with_a_path.contains("check the path in --server"), "{with_a_path}");
    let missing = said(&["info", id, "--server", &bench.url()]);
    assert!(missing.contains("check the id"), "{missing}");
}

#[test]
fn an_organization_with_a_text_cannot_be_bound_and_the_error_says_what_to_do() {
    let bench = Bench::new(Way::Direct);
    for args in [
        &["binding", "create", "--org", "acme", "--name", "Acme", "--provider", "LOCAL"][..],
        &["migrate", "plan", "--org", "acme", "--to", "LOCAL"],
        &["sync", "enqueue", "--org", "acme"],
    ] {
        let said = bench.fails(2, args);
        assert!(said.contains("'acme'") && said.contains("9007199254740991"), "{said}");
        assert!(said.contains("local.backend"), "{said}");
    }
}

#[test]
fn an_invalid_configuration_names_its_file_and_the_key_that_was_meant() {
    let bench = Bench::new(Way::Direct);
    bench.upload("a.txt", "a", &[]);
    for (text, advice) in [
        ("[limits]\nmax_file_siz = 5\n", "did you mean `max_file_size`?"),
        ("max_file_size = 5\n", "it belongs to [limits]"),
    ] {
        bench.write("wrong.toml", text);
        let said = bench.fails(2, &["list", "--config", "wrong.toml"]);
        assert!(said.contains("wrong.toml: the configuration is invalid"), "{said}");
        assert!(said.contains(advice), "{said}");
    }
    bench.write("right.toml", "[limits]\nmax_file_size = \"1KiB\"\n");
    bench.write("large.bin", [b'x'; 1025]);
    let upload = ["upload", "large.bin", "--org", "1", "--sub", "s", "--config", "right.toml"];
    let said = bench.fails(1, &upload);
    assert!(said.contains("1024"), "{said}");
}

#[test]
fn every_command_has_a_manual_page() {
    let work = tempfile::tempdir().unwrap();
    filestore(work.path()).args(["man", "share/man1"]).assert().success();
    let pages = work.path().join("share/man1");
    for page in ["filestore.1", "filestore-upload.1", "filestore-key-create.1"] {
        let page = std::fs::read_to_string(pages.join(page)).unwrap();
        assert!(page.contains(".TH") && page.contains("filestore"), "{page}");
    }
    let refused = filestore(work.path()).args(["man", "/dev/null/x"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_server_below_a_long_path_is_reached_through_its_socket() {
    if !std::path::Path::new("/proc/self/fd").exists() {
        eprintln!("skipped: this system has no /proc/self/fd");
        return;
    }
    let work = tempfile::tempdir().unwrap();
    let data = work.path().join("a-long-name-".repeat(12));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let config = filestore_server::Config::new("127.0.0.1:0".parse().unwrap(), &data);
    let server = runtime.block_on(filestore_server::Server::start(config)).unwrap();

    let output =
        filestore(work.path()).arg("status").arg("--data-dir").arg(&data).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("database    ok"), "{}", text(&output.stdout));
    runtime.block_on(server.stop());
}
