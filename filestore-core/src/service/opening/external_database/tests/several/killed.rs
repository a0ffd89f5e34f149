//! A process among several servers that is killed, or stopped for so long that it is taken for gone.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Child, ChildStdout};

use rustix::process::{Pid, Signal, kill_process};

use crate::service::opening::external_database::tests::several::*;
use crate::worker::Workers;

/// Variables of a process that another test kills or stops: data directory, schema, shared directory.
const OTHER: [&str; 3] = [
    "FILESTORE_TEST_OTHER_DIRECTORY",
    "FILESTORE_TEST_OTHER_SCHEMA",
    "FILESTORE_TEST_OTHER_SHARED",
];

impl Cluster {
    /// Starts a process with a store that uploads on and on.
    fn other(&self, own: &Path) -> Other {
        let test = format!(
            "{}::several::killed::uploads_on_and_on",
            crate::service::opening::external_database::tests::module()
        );
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", &test])
            .env(OTHER[0], own)
            .env(OTHER[1], self.schema.name())
            .env(OTHER[2], self.shared.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(process.stdout.take().unwrap());
        Other { process, said: Some(said) }
    }

    /// Takes the servers of other processes for gone, and ends their work.
    pub(super) async fn end_others(&self) {
        let names: Vec<_> = self.stores.iter().map(|store| format!("'{}'", name(store))).collect();
        let forget = format!(
            "UPDATE servers SET seen_at = clock_timestamp() - interval '1 day' WHERE server NOT IN ({})",
            names.join(", ")
        );
        let ended = async {
            while self.schema.count("servers") > names.len().try_into().unwrap() {
                // Again and again: a server that has just died may have a last report under way.
                self.schema.run(&forget);
                self.stores[0].admin().upkeep().await.unwrap();
            }
        };
        timeout(HANG, ended).await.expect("what the others left is ended");
    }
}

/// Returns the name of a store's server.
fn name(store: &FileStore) -> String {
    let run = store.inner.metadata.servers().unwrap().run_name();
    run.split_once('.').unwrap().0.to_owned()
}

/// A process with a store of its own.
struct Other {
    process: Child,
    said: Option<BufReader<ChildStdout>>,
}

impl Other {
    /// Waits for the next file that the process had acknowledged.
    async fn acknowledged(&mut self) -> Option<FileId> {
        let mut said = self.said.take().expect("one at a time");
        let read = crate::tasks::blocking(move || {
            let mut line = String::new();
            loop {
                line.clear();
                if said.read_line(&mut line).unwrap() == 0 {
                    return (None, said);
                }
                if let Some(id) = line.trim().strip_prefix("acknowledged ") {
                    return (Some(id.parse().unwrap()), said);
                }
            }
        });
        let (id, said) = timeout(HANG, read).await.expect("it goes on").unwrap();
        self.said = Some(said);
        id
    }

    /// Waits for so many files.
    async fn some(&mut self, number: usize) -> Vec<FileId> {
        let mut all = Vec::new();
        while all.len() < number {
            all.push(self.acknowledged().await.expect("it is alive"));
        }
        all
    }

    fn signal(&self, signal: Signal) {
        let id = Pid::from_raw(self.process.id().try_into().unwrap()).unwrap();
        kill_process(id, signal).unwrap();
    }

    /// Ends the process without a word; returns what it had acknowledged since.
    async fn kill(mut self) -> Vec<FileId> {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let mut rest = Vec::new();
        while let Some(id) = self.acknowledged().await {
            rest.push(id);
        }
        rest
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a process that another test kills or stops"]
async fn uploads_on_and_on() {
    let [own, schema, shared] = OTHER.map(std::env::var);
    let (Ok(own), Ok(schema), Ok(shared)) = (own, schema, shared) else { return };
    let config = config(address(), &schema, shared.as_ref());
    let store = FileStore::builder(own).config(config).open().await.unwrap();
    let _workers = Workers::start(&store);
    loop {
        match upload(&store, "other").await {
            Ok(record) => {
                let mut line = String::new();
                writeln!(line, "acknowledged {}", record.file_id).unwrap();
                std::io::stdout().write_all(line.as_bytes()).unwrap();
            }
            // Until it has joined the others again.
            Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{}", error.chain()),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_server_that_is_killed_loses_nothing_it_acknowledged_and_leaves_nothing_behind() {
    let cluster = Cluster::of(2).await;
    let [one, two] = &cluster.stores[..] else { panic!("two") };
    let own = tempfile::tempdir().unwrap();
    let mut acknowledged = Vec::new();
    for _ in 0..3 {
        let mut other = cluster.other(own.path());
        acknowledged.extend(other.some(10).await);
        acknowledged.push(upload(one, "mine").await.unwrap().file_id);
        acknowledged.extend(other.kill().await);

        // The others go on, without waiting for anybody.
        acknowledged.push(upload(two, "mine").await.unwrap().file_id);
    }

    for id in &acknowledged {
        let text = read(one, *id).await.unwrap();
        assert!(text == "mine" || text == "other", "{text:?}");
    }
    cluster.end_others().await;
    cluster.assert_sound().await;
    cluster.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs PostgreSQL: tests/services/postgres/run"]
async fn a_server_that_slept_and_was_taken_for_gone_goes_on_as_a_new_one() {
    let cluster = Cluster::of(1).await;
    let one = &cluster.stores[0];
    let own = tempfile::tempdir().unwrap();
    let mut other = cluster.other(own.path());
    let mut acknowledged = other.some(5).await;

    for _ in 0..2 {
        other.signal(Signal::STOP);
        cluster.end_others().await;
        acknowledged.push(upload(one, "mine").await.unwrap().file_id);

        other.signal(Signal::CONT);
        // More than had been said before it slept.
        acknowledged.extend(other.some(200).await);
    }

    acknowledged.extend(other.kill().await);
    for id in &acknowledged {
        read(one, *id).await.unwrap();
    }
    cluster.assert_sound().await;
    cluster.close().await;
}
