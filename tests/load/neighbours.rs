//! Three organizations at once, one LOCAL, one at a sound provider, one at a provider that meets faults:
//! what the first two notice of the third.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use filestore_workspace::fixtures::noise;
use filestore_workspace::s3::{Fault, On};
use filestore_workspace::{Remote, S3Server, TestServer};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::server::Outcome;

/// The length of a window with the fault, and of one without, unless `window=SECS` says otherwise.
const WINDOW: Duration = Duration::from_secs(30);
/// Pairs of windows for each fault, unless `rounds=N` says otherwise.
const ROUNDS: usize = 5;
/// Clients of each organization.
const CLIENTS: usize = 3;
/// The pause of a client between two files: the machine must not be busy by itself.
const PAUSE: Duration = Duration::from_millis(60);
/// The time after which a client of the third organization gives up.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time in which the service settles after a change, before it is measured.
const SETTLING: Duration = Duration::from_secs(1);

const LOCAL: &str = "1";
const SOUND: &str = "2";
const FAULTY: &str = "3";

/// What happens to the faulty provider.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    /// Connections are refused.
    Dead,
    /// Requests are read, and never answered.
    Silent,
    /// Bodies are taken at some KiB a second.
    Throttled,
    /// Every request is answered 503 `SlowDown`.
    RateLimited,
}

impl Trouble {
    const ALL: [Self; 4] = [Self::Dead, Self::Silent, Self::Throttled, Self::RateLimited];

    async fn begin(self, s3: &S3Server) {
        match self {
            Self::Dead => s3.down().await,
            Self::Silent => drop(s3.faults().every(On::Any, Fault::Hang)),
            Self::Throttled => drop(s3.faults().every(On::Any, Fault::Trickle)),
            Self::RateLimited => drop(s3.faults().every(On::Any, Fault::SlowDown)),
        }
    }

    async fn end(self, s3: &S3Server) {
        match self {
            Self::Dead => s3.up().await,
            Self::Silent | Self::Throttled | Self::RateLimited => s3.faults().clear(),
        }
    }
}

/// The times of the requests of one window, by organization, and the requests that failed.
#[derive(Default)]
struct Tally {
    millis: Mutex<BTreeMap<&'static str, Vec<f64>>>,
    failed: Mutex<BTreeMap<&'static str, usize>>,
}

impl Tally {
    fn done(&self, organization: &'static str, took: Duration) {
        locked(&self.millis).entry(organization).or_default().push(took.as_secs_f64() * 1000.0);
    }

    fn failed(&self, organization: &'static str) {
        *locked(&self.failed).entry(organization).or_default() += 1;
    }

    /// Takes the window's p50 and p99 of an organization, and begins a new one.
    fn take(&self, organization: &'static str) -> Option<(f64, f64)> {
        let mut times = locked(&self.millis).remove(organization)?;
        times.sort_by(f64::total_cmp);
        let at = |part: usize| times[(times.len() * part / 100).min(times.len() - 1)];
        Some((at(50), at(99)))
    }

    fn take_failed(&self, organization: &'static str) -> usize {
        locked(&self.failed).remove(organization).unwrap_or_default()
    }

    fn clear(&self) {
        locked(&self.millis).clear();
        locked(&self.failed).clear();
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn run() -> Outcome {
    let window = option("window=").map_or(WINDOW, Duration::from_secs);
    let rounds = option("rounds=").map_or(ROUNDS, |rounds| usize::try_from(rounds).unwrap_or(1));

    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let (faulty, sound) = (S3Server::start().await, S3Server::start().await);
        let (at_faulty, at_sound) = (Remote::at(&faulty), Remote::at(&sound));
        let server = TestServer::start_with(|config| {
            config.check_providers = false;
            config.store.providers = vec![at_faulty.config.clone(), at_sound.config.clone()];
        })
        .await;
        server.bind(2, at_sound.code(), false).await;
        server.bind(3, at_faulty.code(), false).await;

        let server = Arc::new(server);
        let tally = Arc::new(Tally::default());
        let (stop, stopped) = watch::channel(false);
        let mut clients = JoinSet::new();
        for organization in [LOCAL, SOUND, FAULTY] {
            for _ in 0..CLIENTS {
                let (server, tally) = (Arc::clone(&server), Arc::clone(&tally));
                clients.spawn(client(server, tally, organization, stopped.clone()));
            }
        }

        println!("windows of {window:?}, {rounds} pairs of them, on / off");
        println!("fault        organization     p50    p99   failed on  failed off");
        for trouble in Trouble::ALL {
            measure(trouble, &faulty, &tally, window, rounds).await;
        }

        stop.send_replace(true);
        while clients.join_next().await.is_some() {}
        Ok(())
    })
}

/// Reads a number that the command line gives as `name=NUMBER`.
pub(crate) fn option(name: &str) -> Option<u64> {
    std::env::args().find_map(|arg| arg.strip_prefix(name)?.parse().ok())
}

/// Alternates windows without and with the trouble, and prints the medians of the ratios.
async fn measure(
    trouble: Trouble,
    faulty: &S3Server,
    tally: &Tally,
    window: Duration,
    rounds: usize,
) {
    let mut ratios: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    let mut failed: BTreeMap<(&str, bool), usize> = BTreeMap::new();

    for _ in 0..rounds {
        let off = watch_window(tally, window, &mut failed, false).await;
        trouble.begin(faulty).await;
        let on = watch_window(tally, window, &mut failed, true).await;
        trouble.end(faulty).await;

        for (organization, (p50, p99)) in on {
            if let Some((p50_off, p99_off)) = off.get(organization) {
                ratios.entry(organization).or_default().push((p50 / p50_off, p99 / p99_off));
            }
        }
    }

    for organization in [LOCAL, SOUND, FAULTY] {
        let all = ratios.remove(organization).unwrap_or_default();
        let p50 = median(all.iter().map(|(p50, _)| *p50).collect());
        let p99 = median(all.iter().map(|(_, p99)| *p99).collect());
        let count = |on| failed.get(&(organization, on)).copied().unwrap_or_default();
        println!(
            "{:<12} {:<14} {p50:>5}  {p99:>5}   {:>9}  {:>10}",
            format!("{trouble:?}"),
            name_of(organization),
            count(true),
            count(false)
        );
    }
}

/// Measures one window, once the service has settled.
async fn watch_window(
    tally: &Tally,
    window: Duration,
    failed: &mut BTreeMap<(&'static str, bool), usize>,
    is_on: bool,
) -> BTreeMap<&'static str, (f64, f64)> {
    tokio::time::sleep(SETTLING).await;
    tally.clear();
    tokio::time::sleep(window).await;

    let mut seen = BTreeMap::new();
    for organization in [LOCAL, SOUND, FAULTY] {
        *failed.entry((organization, is_on)).or_default() += tally.take_failed(organization);
        if let Some(times) = tally.take(organization) {
            seen.insert(organization, times);
        }
    }
    seen
}

fn name_of(organization: &str) -> &'static str {
    match organization {
        LOCAL => "LOCAL",
        SOUND => "sound provider",
        _ => "its own",
    }
}

/// Formats the median; a dash where nothing was answered in any window.
fn median(mut ratios: Vec<f64>) -> String {
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"))
}

/// Uploads a file, reads it and deletes it, again and again. Each answer counts with its time.
async fn client(
    server: Arc<TestServer>,
    tally: Arc<Tally>,
    organization: &'static str,
    stopped: watch::Receiver<bool>,
) {
    static SEED: AtomicUsize = AtomicUsize::new(0);
    let seed = SEED.fetch_add(1, Ordering::Relaxed) as u64;
    let bytes = noise(seed, 64 << 10);

    while !*stopped.borrow() {
        let upload = server.upload(&bytes).org(organization).call();
        if let Some(reply) = timed(&tally, organization, 201, upload).await {
            let id = reply.file_id();
            let status = if organization == LOCAL { 200 } else { 302 };
            timed(&tally, organization, status, server.content(&id)).await;
            let path = format!("/api/v1/files/{id}");
            timed(&tally, organization, 200, server.call(reqwest::Method::DELETE, &path)).await;
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn timed(
    tally: &Tally,
    organization: &'static str,
    status: u16,
    call: filestore_workspace::Call,
) -> Option<filestore_workspace::Reply> {
    let began = Instant::now();
    let reply = tokio::time::timeout(PATIENCE, call.try_send()).await;
    match reply {
        Ok(Ok(reply)) if reply.status == status => {
            tally.done(organization, began.elapsed());
            Some(reply)
        }
        _ => {
            tally.failed(organization);
            None
        }
    }
}
