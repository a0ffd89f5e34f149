//! The connection through which a server reports that it is alive, and learns about changes by others.
//!
//! # Purpose
//! The connection is one of the configured number, but not part of the pool. Calls that wait for each other
//! in the pool can therefore not delay the reports.
//!
//! # Bounds
//! A server that changes the secrets notifies all listeners. A lost connection can lose a notification. The
//! version is therefore also read twice a second. While the database does not answer, the known version
//! becomes old, and callers see its age ([`SecretsVersion::as_of`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::{AsyncMessage, Client};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::domain::error::Result;
use crate::domain::id::StoreId;
use crate::metadata::SecretsVersion;
use crate::tasks;

use super::member::{Member, Rival, SECRETS};
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::options::PostgresOptions;
use crate::metadata::postgres::session::tls;

/// The pause between two reads of the secrets' version.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The number of reports within the time after which a server counts as gone.
const BEATS: u32 = 6;

/// The pause before a lost connection is replaced.
const PAUSE: Duration = Duration::from_millis(500);

/// The background task. Dropping this value ends it.
pub(in crate::metadata::postgres) struct Watching(JoinHandle<()>);

impl Watching {
    /// Ends the watch.
    pub(in crate::metadata::postgres) fn stop(&self) {
        self.0.abort();
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The state of a watch.
struct Watch {
    member: Arc<Member>,
    /// The last known era.
    era: Arc<AtomicI64>,
    store: StoreId,
    options: PostgresOptions,
    tls: MakeRustlsConnect,
}

/// Starts to watch for a member of the store's servers.
pub(in crate::metadata::postgres) fn start(
    member: Arc<Member>,
    era: Arc<AtomicI64>,
    store: StoreId,
    options: &PostgresOptions,
) -> Result<Watching> {
    let tls = tls::connector(options.root_certificates.as_deref())?;
    let watch = Watch { member, era, store, options: options.clone(), tls };
    Ok(Watching(tasks::spawn(watch.go_on())))
}

impl Watch {
    /// Watches on one connection after the other, until another process uses this server's name.
    async fn go_on(self) {
        let mut is_said = false;
        while !*self.member.is_succeeded.borrow() {
            let began = Instant::now();
            let Err(fault) = self.on_a_connection().await else { continue };
            // Once for each outage, however long.
            is_said &= began.elapsed() < self.options.connect_timeout * 2;
            if is_said {
                tracing::debug!(%fault, "the connection that watches the database ended again");
            } else {
                tracing::warn!(%fault, "the connection that watches the database ended: connecting again");
            }
            is_said = true;
            sleep(PAUSE).await;
        }
    }

    async fn on_a_connection(&self) -> Result<(), Fault> {
        let mut client = self.in_time(self.connect()).await?;
        let mut beat_at = Instant::now();
        while !*self.member.is_succeeded.borrow() {
            let as_of = Instant::now();
            let row = self.in_time(async { Ok(client.query_one(SECRETS, &[]).await?) }).await?;
            self.member.learn(SecretsVersion { number: row.try_get(0)?, as_of });
            self.era.fetch_max(row.try_get(1)?, Ordering::AcqRel);

            if beat_at <= Instant::now() {
                let rivals = self.in_time(self.member.beat(&mut client, self.store)).await?;
                self.report(&rivals);
                beat_at = Instant::now() + self.member.gone_after / BEATS;
            }
            if timeout(LOOK_EVERY, self.member.look.notified()).await.is_ok() {
                beat_at = beat_at.min(Instant::now());
            }
        }
        Ok(())
    }

    fn report(&self, rivals: &[Rival]) {
        if let Some(rival) = rivals.first() {
            tracing::error!(
                server = self.member.name(),
                "this server changes nothing: {}",
                rival.refusal()
            );
        }
    }

    /// Waits for an answer, with a time limit.
    async fn in_time<T>(&self, answer: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let limit = self.options.connect_timeout;
        timeout(limit, answer).await.unwrap_or(Err(Fault::Silent(limit)))
    }

    /// Creates a listening connection.
    async fn connect(&self) -> Result<Client, Fault> {
        let (client, mut connection) = self.options.server.connect(self.tls.clone()).await?;
        let (member, schema) = (Arc::clone(&self.member), self.options.schema.clone());
        let mut messages = stream::poll_fn(move |context| connection.poll_message(context)).boxed();
        tasks::spawn(async move {
            // Ends when the client is dropped, or the connection breaks.
            while let Some(Ok(message)) = messages.next().await {
                if matches!(&message, AsyncMessage::Notification(told) if told.payload() == schema)
                {
                    member.distrust();
                }
            }
        });

        let schema = &self.options.schema;
        let set_up = format!("SET search_path TO \"{schema}\"; SET jit TO off; LISTEN filestore");
        client.batch_execute(&set_up).await?;
        // What was told before the first word was heard is found by the first look.
        Ok(client)
    }
}
