//! A proxy before the server, which cuts connections or goes silent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// The treatment of a COMMIT by a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum AtCommit {
    Forward = 0,
    /// Cuts the connection instead of forwarding it.
    CutBefore = 1,
    /// Forwards it, and cuts the connection before its answer.
    CutAfter = 2,
    /// Lets nobody through at all.
    Refuse = 3,
    /// Forwards it, and cuts the connection at once. New connections are refused.
    CutAtOnce = 4,
    /// Forwards it, and from then on nothing more on that connection, which stays.
    SilentAfter = 5,
    /// Forwards nothing, on any connection, and cuts none.
    Silent = 6,
}

/// A proxy before the server of the tests.
pub(crate) struct Proxy {
    /// The way to the server through the proxy.
    pub(crate) address: String,
    pub(crate) options: PostgresOptions,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    mode: AtomicU8,
    cuts: AtomicUsize,
}

impl Shared {
    fn cuts(&self) -> usize {
        self.cuts.load(Ordering::Acquire)
    }

    fn is(&self, mode: AtCommit) -> bool {
        self.mode.load(Ordering::Acquire) == mode as u8
    }
}

impl Proxy {
    pub(crate) async fn before(schema: &Schema) -> Self {
        let options = schema.options();
        let port = options.server.get_ports()[0];
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own_port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared::default());
        tokio::spawn(accept(listener, port, Arc::clone(&shared)));

        let address = std::env::var(ADDRESS).unwrap();
        let address = address.replace(&format!(":{port}/"), &format!(":{own_port}/"));
        let through = PostgresOptions::new(&address).unwrap();
        let options = PostgresOptions { server: through.server, ..options };
        Self { address, options, shared }
    }

    pub(crate) fn set(&self, mode: AtCommit) {
        self.shared.mode.store(mode as u8, Ordering::Release);
    }

    /// Returns the number of COMMITs that were not treated well.
    pub(crate) fn cuts(&self) -> usize {
        self.shared.cuts()
    }
}

async fn accept(listener: TcpListener, port: u16, shared: Arc<Shared>) {
    let mut held = Vec::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        if shared.is(AtCommit::Refuse) || shared.is(AtCommit::CutAtOnce) && shared.cuts() > 0 {
            continue;
        }
        if shared.is(AtCommit::Silent) {
            held.push(client);
            continue;
        }
        let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        tokio::spawn(relay(client, server, Arc::clone(&shared)));
    }
}

/// Relays both ways until the mode says to cut.
async fn relay(client: TcpStream, server: TcpStream, shared: Arc<Shared>) -> Option<()> {
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let (mut sent, mut answered) = (vec![0; 65_536], vec![0; 65_536]);
    let mut is_silent = false;
    loop {
        tokio::select! {
            length = from_client.read(&mut sent) => {
                let bytes = &sent[..length.ok().filter(|length| *length > 0)?];
                is_silent |= shared.is(AtCommit::Silent);
                if is_silent {
                    continue;
                }
                let is_commit = bytes.windows(7).any(|part| part == b"COMMIT\0");
                if is_commit && !shared.is(AtCommit::Forward) {
                    shared.cuts.fetch_add(1, Ordering::AcqRel);
                }
                if is_commit && shared.is(AtCommit::CutBefore) {
                    return None;
                }

                to_server.write_all(bytes).await.ok()?;
                if is_commit && shared.is(AtCommit::CutAfter) {
                    // Its answer: so it was done.
                    from_server.readable().await.ok()?;
                    return None;
                }
                if is_commit && shared.is(AtCommit::CutAtOnce) || shared.is(AtCommit::Refuse) {
                    return None;
                }
                is_silent |= is_commit && shared.is(AtCommit::SilentAfter);
            }
            length = from_server.read(&mut answered) => {
                let bytes = &answered[..length.ok().filter(|length| *length > 0)?];
                if !is_silent {
                    to_client.write_all(bytes).await.ok()?;
                }
            }
        }
    }
}

/// Commits of files that wait at the server until they are let go.
pub(crate) struct SlowCommits {
    name: String,
    /// Holds what they wait for.
    holder: deadpool_postgres::Object,
    watcher: deadpool_postgres::Object,
}

impl SlowCommits {
    /// Makes all commits of new files wait.
    pub(crate) async fn of(schema: &Schema) -> Self {
        let name = schema.name().to_owned();
        let lock = format!("pg_advisory_xact_lock(hashtextextended('{name}', 0))");
        schema.run(&format!(
            "CREATE FUNCTION wait_for_the_test() RETURNS trigger LANGUAGE plpgsql
             SET lock_timeout TO 0 SET client_connection_check_interval TO 0 AS $$ BEGIN
             PERFORM {lock}; RETURN NULL; END $$;
             CREATE CONSTRAINT TRIGGER wait_for_the_test AFTER INSERT ON files DEFERRABLE INITIALLY DEFERRED
             FOR EACH ROW EXECUTE FUNCTION wait_for_the_test()"
        ));

        let pool = crate::metadata::postgres::session::pool::pool(&schema.options()).unwrap();
        let (holder, watcher) = (pool.get().await.unwrap(), pool.get().await.unwrap());
        holder.batch_execute("SET idle_in_transaction_session_timeout TO 0").await.unwrap();
        holder.batch_execute(&format!("BEGIN; SELECT {lock}")).await.unwrap();
        Self { name, holder, watcher }
    }

    /// Waits for a commit that waits; returns its session.
    pub(crate) async fn session(&self) -> i32 {
        self.waiting(1).await[0]
    }

    /// Waits for so many commits that wait; returns their sessions.
    pub(crate) async fn waiting(&self, commits: usize) -> Vec<i32> {
        // An advisory lock's number is in two parts.
        let query = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND
             ((classid::bigint << 32) | objid::bigint) = hashtextextended($1, 0)";
        loop {
            let rows = self.watcher.query(query, &[&self.name]).await.unwrap();
            if rows.len() >= commits {
                return rows.iter().map(|row| row.get(0)).collect();
            }
        }
    }

    /// Tells whether a start waits, or has waited.
    pub(crate) async fn is_asked_for(&self, application: &str) -> bool {
        let query = "SELECT 1 FROM pg_stat_activity
             WHERE application_name = $1 AND query LIKE '%pg_try_advisory_xact_lock%'";
        !self.watcher.query(query, &[&application]).await.unwrap().is_empty()
    }

    /// Lets the commits go on.
    pub(crate) async fn go_on(&self) {
        self.holder.batch_execute("ROLLBACK").await.unwrap();
    }
}
