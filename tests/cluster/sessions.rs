//! The sessions that servers have at PostgreSQL, looked at all the time.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::parts::Environment;

/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(250);

/// The least number of looks that show something.
const LEAST_LOOKS: usize = 20;

/// Counts the sessions of each process: the name of an application is that of one process alone.
const QUERY: &str = "SELECT application_name, count(*) FROM pg_stat_activity
    WHERE application_name LIKE 'server-%' GROUP BY 1";

/// A watch over the sessions.
pub(crate) struct Sessions {
    is_over: Arc<AtomicBool>,
    task: JoinHandle<Seen>,
}

/// The most sessions of each process, and the number of looks.
#[derive(Default)]
struct Seen {
    most: BTreeMap<String, usize>,
    looks: usize,
}

impl Sessions {
    pub(crate) fn watch() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let task = tokio::task::spawn_blocking(move || {
            let mut seen = Seen::default();
            while !ends.load(Ordering::Relaxed) {
                seen.look();
                std::thread::sleep(PAUSE);
            }
            seen
        });
        Self { is_over, task }
    }

    /// Ends the watch; asserts that no process ever had more than the configured number.
    pub(crate) async fn end(mut self) -> String {
        self.is_over.store(true, Ordering::Relaxed);
        let Seen { most, looks } = (&mut self.task).await.expect("the watch goes on");
        assert!(looks >= LEAST_LOOKS, "{looks} looks");
        let all = Environment::connections();
        for (process, sessions) in &most {
            assert!(*sessions <= all, "{process} had {sessions} sessions, {all} are configured");
        }
        let largest = most.values().max().expect("servers have sessions");
        format!("at most {largest} sessions of {all} of one server at PostgreSQL, in {looks} looks")
    }
}

impl Drop for Sessions {
    /// Ends the watch, also after a failure: the runtime would wait for it without an end.
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Seen {
    /// Looks once; a database that is away has no sessions.
    fn look(&mut self) {
        let address = std::env::var("FILESTORE_TEST_POSTGRES_SUPER").expect("the script sets it");
        let mut command = Command::new("psql");
        command.args(["-X", "-q", "-A", "-t", "-F", " ", "-c", QUERY, &address]);
        let output =
            command.stdin(Stdio::null()).stderr(Stdio::null()).output().expect("psql runs");
        if !output.status.success() {
            return;
        }

        self.looks += 1;
        for line in String::from_utf8(output.stdout).expect("text").lines() {
            let (process, sessions) = line.split_once(' ').expect("two columns");
            let most = self.most.entry(process.to_owned()).or_default();
            *most = (*most).max(sessions.parse().expect("a number"));
        }
    }
}
