//! Joins an engine to the servers of its store.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::domain::error::{Error, ErrorKind, Result};

use super::member::{self, Member, Rival, ServerIdentity};
use super::servers::JoinedServers;
use super::watch;
use crate::metadata::postgres::PostgresMetadata;
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::servers::CLOCKS_APART;

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

impl PostgresMetadata {
    /// Joins the servers of the store under a unique name. Waits for a server that excludes this one but
    /// might be gone. Returns [`ErrorKind::Locked`] if that server is alive.
    pub(crate) async fn join(&self, identity: ServerIdentity) -> Result<()> {
        let gone_after = self.options.server_timeout;
        let end = Instant::now() + gone_after + gone_after / 2;
        let mut first: Option<Vec<Rival>> = None;

        let epoch = loop {
            let joined = self.try_join(&identity, gone_after).await.map_err(Fault::at_opening)?;
            let rivals = match joined {
                Ok(epoch) => break epoch,
                Err(rivals) => rivals,
            };

            let before = first.get_or_insert_with(|| {
                tracing::warn!("the start waits: a server that keeps this one out may be gone");
                rivals.clone()
            });
            let living = rivals.iter().find(|rival| rival.lives_since(before));
            let over = if Instant::now() >= end { rivals.first() } else { None };
            if let Some(rival) = living.or(over) {
                return Err(Error::new(ErrorKind::Locked, rival.refusal())
                    .with_field("postgres.only_server"));
            }
            sleep(PAUSE).await;
        };

        let member = Arc::new(Member::new(identity, epoch, gone_after));
        let watching = watch::start(
            Arc::clone(&member),
            self.engine.known_era(),
            self.engine.store,
            &self.options,
        )?;
        self.engine.has_joined(Arc::clone(&member), watching);
        // A second joining changes nothing.
        let _ = self.servers.set(JoinedServers::new(Arc::clone(&self.engine), member));
        Ok(())
    }

    async fn try_join(
        &self,
        identity: &ServerIdentity,
        gone_after: Duration,
    ) -> Result<Result<i64, Vec<Rival>>, Fault> {
        let mut connection = self.engine.connection().await?;
        member::join(&mut connection, self.engine.store, identity, gone_after).await
    }

    /// Returns an error if a clock differs too much from the database's clock for shared work.
    pub(crate) async fn check_clock(&self, now: impl Fn() -> i64 + Send) -> Result<()> {
        let (began, asked_at) = (now(), Instant::now());
        let theirs = self.engine.read("reading the clock", &(), |sql, ()| {
            Box::pin(async move {
                let row = sql.first(CLOCK, &[]).await?;
                Ok(row.map(|row| row.try_get::<_, i64>(0)).transpose()?.unwrap_or_default())
            })
        });
        let theirs = theirs.await?;

        let most = CLOCKS_APART + asked_at.elapsed();
        let apart = Duration::from_millis(theirs.abs_diff(began));
        if apart <= most {
            return Ok(());
        }
        let message = format!(
            "the clocks of this machine and of the database's differ by {} seconds, and servers that share their \
             work go by both: let both follow one time server (NTP)",
            apart.as_secs()
        );
        Err(Error::new(ErrorKind::Unusable, message))
    }
}
