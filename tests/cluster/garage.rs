//! The nodes of Garage, which `tests/services/run` has started.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use filestore_workspace::eventually;

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| {
        panic!("{name} is not set: run this test by tests/services/cluster/run")
    })
}

/// The key of the bucket, and the bucket.
pub(crate) struct Bucket {
    pub(crate) name: String,
    pub(crate) key_id: String,
    pub(crate) secret: String,
}

impl Bucket {
    pub(crate) fn read() -> Self {
        let [name, key_id, secret] = [
            "FILESTORE_TEST_GARAGE_BUCKET",
            "FILESTORE_TEST_GARAGE_KEY_ID",
            "FILESTORE_TEST_GARAGE_SECRET",
        ]
        .map(variable);
        Self { name, key_id, secret }
    }
}

/// One node.
pub(crate) struct Node {
    dir: PathBuf,
    /// Its address, `HOST:PORT`.
    pub(crate) address: String,
}

impl Node {
    /// Finds all three. From now on a start of one is a start alone: none is told of the others.
    pub(crate) fn all() -> Vec<Self> {
        let nodes = PathBuf::from(variable("FILESTORE_TEST_GARAGE_NODES"));
        let endpoints = variable("FILESTORE_TEST_GARAGE_ENDPOINTS");
        let nodes = endpoints.split(' ').enumerate().map(|(at, endpoint)| {
            let dir = nodes.join((at + 1).to_string());
            let _ = std::fs::remove_file(dir.join("ready"));
            let address = endpoint.strip_prefix("http://").expect("plain HTTP");
            Self { dir, address: address.to_owned() }
        });
        nodes.collect()
    }

    /// Ends the node: by SIGTERM in even rounds, by SIGKILL in odd ones.
    pub(crate) fn end(&self, round: usize) {
        self.service(if round.is_multiple_of(2) { "stop" } else { "kill" });
    }

    pub(crate) fn start(&self) {
        self.service("start");
    }

    fn service(&self, verb: &str) {
        let mut command = Command::new(variable("FILESTORE_TEST_SERVICE"));
        let status = command.arg(verb).arg(&self.dir).stdin(Stdio::null()).status();
        assert!(status.expect("the script runs").success(), "{verb} {}", self.dir.display());
    }

    /// Waits until each node is connected to all the others, which they see to by themselves.
    pub(crate) async fn are_joined(nodes: &[Self]) {
        for node in nodes {
            let what = format!("{} sees all nodes of Garage", node.dir.display());
            eventually(&what, async || {
                let health = node.health();
                let text = String::from_utf8_lossy(&health.stdout);
                text.lines()
                    .any(|line| line.starts_with("Cluster health:") && line.ends_with(" HEALTHY"))
                    .then_some(())
            })
            .await;
        }
    }

    fn health(&self) -> Output {
        let client = self.dir.with_file_name("client");
        let config = self.dir.join("garage.toml");
        let output = Command::new(client).arg("-c").arg(config).arg("health").output();
        output.expect("Garage's client runs")
    }
}
