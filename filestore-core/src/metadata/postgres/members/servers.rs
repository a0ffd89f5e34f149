//! The exchange between servers: entries, leftovers, rate limits and secrets.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::Instant;
use tokio_postgres::Row;

use crate::domain::error::Result;
use crate::domain::id::FileId;
use crate::domain::report::erasure::Era;
use crate::domain::time::clock::Timestamp;
use crate::metadata::{Company, SecretsVersion, Servers, ShownWork, UploadRow};

use super::member::{Member, SECRETS};
use super::{leftovers, rate_uses};
use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::{Param, Sql};
use crate::metadata::postgres::session::transaction::Engine;
use crate::metadata::postgres::tables::{resumables, row};

/// SQL that is true if the server of `$owner` was seen within the last `$secs` seconds.
macro_rules! lives {
    ($owner:literal, $secs:literal) => {
        concat!(
            "EXISTS (SELECT 1 FROM servers WHERE server = split_part(",
            $owner,
            ", '.', 1) AND epoch::text = split_part(",
            $owner,
            ", '.', 2) AND seen_at > clock_timestamp() - ",
            $secs,
            "::double precision * interval '1 second')"
        )
    };
}

pub(in crate::metadata::postgres) const SEEN: &str = "SELECT 1 FROM servers WHERE server = $1
     AND seen_at > clock_timestamp() - $2::double precision * interval '1 second'";

/// Replaces the entry of a server that is gone.
pub(in crate::metadata::postgres) const ENTER: &str = concat!(
    "INSERT INTO under_way AS entry (name, owner) VALUES ($1, $2)
     ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, shown = NULL, is_told_to_stop = false
     WHERE NOT ",
    lives!("entry.owner", "$3")
);

pub(in crate::metadata::postgres) const LEAVE: &str =
    "DELETE FROM under_way WHERE name = $1 AND owner = $2";

pub(in crate::metadata::postgres) const SHOW: &str =
    "UPDATE under_way SET shown = $3 WHERE name = $1 AND owner = $2 RETURNING is_told_to_stop";

/// Selects entries of live servers other than `$3`. `chr(1114111)` comes after every text.
pub(in crate::metadata::postgres) const SHOWN: &str = concat!(
    "SELECT name, shown FROM under_way
     WHERE name >= $1 AND name < $1 || chr(1114111) AND shown IS NOT NULL AND split_part(owner, '.', 1) <> $3
     AND ",
    lives!("owner", "$2"),
    " ORDER BY name"
);

pub(in crate::metadata::postgres) const TELL_TO_STOP: &str = concat!(
    "UPDATE under_way SET is_told_to_stop = true WHERE name = $1 AND ",
    lives!("owner", "$2")
);

const CLEAR_ENTRIES: &str = "DELETE FROM under_way";

/// An entry need not wait for the disk. In the worst case, a server that crashed is asked to do work twice.
const LAZILY: &str = "SET LOCAL synchronous_commit TO off";

/// Selects blobs that are confirmed absent, and whether their file no longer has their content. A moved file
/// still has its content. All blobs of one time are returned together.
pub(in crate::metadata::postgres) const ABSENT_SINCE: &str = "SELECT r.file_id, r.noted_at, NOT EXISTS (
     SELECT 1 FROM files WHERE files.file_id = r.file_id AND files.sha256 = r.sha256)
     FROM removed_blobs AS r WHERE r.noted_at > $1 ORDER BY r.noted_at FETCH FIRST ($2) ROWS WITH TIES";

/// The servers of a store, for a server that has joined them.
pub(in crate::metadata::postgres) struct JoinedServers {
    engine: Arc<Engine>,
    member: Arc<Member>,
}

impl JoinedServers {
    pub(super) fn new(engine: Arc<Engine>, member: Arc<Member>) -> Self {
        Self { engine, member }
    }
}

#[async_trait]
impl Servers for JoinedServers {
    fn company(&self) -> Company {
        if self.member.identity.is_only { Company::Alone } else { Company::Others }
    }

    fn run_name(&self) -> String {
        self.member.run_name()
    }

    async fn end_earlier(&self, not_before: Timestamp) -> Result<()> {
        let earlier = (self.member.name().to_owned(), self.member.epoch(), not_before);
        self.engine
            .write("ending what an earlier process left", earlier, |sql, (name, epoch, until)| {
                Box::pin(leftovers::end_earlier(sql, (name, *epoch), *until))
            })
            .await
    }

    async fn end_gone(&self, not_before: Timestamp) -> Result<u64> {
        let gone_after = self.member.gone_after;
        let wanted = (self.member.name(), gone_after);
        let gone = self
            .engine
            .read("looking for servers that are gone", &wanted, |sql, (name, gone_after)| {
                Box::pin(leftovers::gone(sql, name, *gone_after))
            })
            .await?;

        let mut ended = 0;
        for server in gone {
            let left = (server, gone_after, not_before);
            let ending = self.engine.write(
                "ending what a server left",
                left,
                |sql, (server, gone_after, not_before)| {
                    Box::pin(leftovers::end_one(sql, server, *gone_after, *not_before))
                },
            );
            ended += u64::from(ending.await?);
        }
        Ok(ended)
    }

    async fn is_gone(&self, server: &str) -> Result<bool> {
        let wanted = (server, self.member.gone_after.as_secs_f64());
        self.engine
            .read("looking for a server", &wanted, |sql, (server, gone_after)| {
                Box::pin(async move { Ok(!sql.exists(SEEN, &[server, gone_after]).await?) })
            })
            .await
    }

    async fn stranded_uploads(&self, limit: usize) -> Result<Vec<UploadRow>> {
        let wanted = (self.member.gone_after.as_secs_f64(), row::limit(limit));
        self.engine
            .read("looking for stranded uploads", &wanted, |sql, (gone_after, limit)| {
                Box::pin(async move {
                    let wanted: [Param<'_>; 2] = [gone_after, limit];
                    sql.collect(resumables::STRANDED, &wanted, resumables::upload).await
                })
            })
            .await
    }

    async fn enter(&self, name: &str, owner: &str) -> Result<bool> {
        let gone_after = self.member.gone_after.as_secs_f64();
        let entry = (name.to_owned(), owner.to_owned(), gone_after);
        self.engine
            .write("entering work", entry, |sql, (name, owner, gone_after)| {
                Box::pin(async move {
                    sql.batch(LAZILY).await?;
                    Ok(sql.execute(ENTER, &[name, owner, gone_after]).await? > 0)
                })
            })
            .await
    }

    async fn leave(&self, name: &str, owner: &str) -> Result<()> {
        self.engine
            .write("ending an entry", (name.to_owned(), owner.to_owned()), |sql, (name, owner)| {
                Box::pin(async move {
                    sql.batch(LAZILY).await?;
                    sql.execute(LEAVE, &[name, owner]).await.map(drop)
                })
            })
            .await
    }

    async fn show(&self, name: &str, owner: &str, shown: &str) -> Result<bool> {
        let state = (name.to_owned(), owner.to_owned(), shown.to_owned());
        self.engine
            .write("showing work", state, |sql, (name, owner, shown)| {
                Box::pin(async move {
                    sql.batch(LAZILY).await?;
                    let row = sql.first(SHOW, &[name, owner, shown]).await?;
                    Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or(false))
                })
            })
            .await
    }

    async fn shown(&self, prefix: &str) -> Result<Vec<ShownWork>> {
        let wanted = (prefix, self.member.gone_after.as_secs_f64(), self.member.name());
        self.engine
            .read("looking at the work of servers", &wanted, |sql, (prefix, gone_after, own)| {
                Box::pin(async move {
                    let rows = sql.rows(SHOWN, &[prefix, gone_after, own]).await?;
                    let work =
                        |row: &Row| Ok(ShownWork { name: row.try_get(0)?, shown: row.try_get(1)? });
                    rows.iter().map(work).collect()
                })
            })
            .await
    }

    async fn tell_to_stop(&self, name: &str) -> Result<bool> {
        let wanted = (name.to_owned(), self.member.gone_after.as_secs_f64());
        self.engine
            .write("telling work to stop", wanted, |sql, (name, gone_after)| {
                Box::pin(
                    async move { Ok(sql.execute(TELL_TO_STOP, &[name, gone_after]).await? > 0) },
                )
            })
            .await
    }

    async fn exchange_uses(&self, own: Vec<(String, u64)>) -> Result<Vec<(String, u64)>> {
        if self.member.identity.is_only {
            return Ok(Vec::new());
        }
        if own.is_empty() {
            let server = self.member.epoch_name();
            let words = self
                .engine
                .read("hearing of uses of limits", &server, |sql, server| {
                    Box::pin(rate_uses::hear(sql, server))
                })
                .await?;
            return Ok(self.member.rates.lock().hear(words));
        }

        let told = (self.member.epoch_name(), self.member.rates.lock().next(), own);
        let words = self
            .engine
            .write("exchanging uses of limits", told, |sql, (server, number, own)| {
                Box::pin(rate_uses::exchange(sql, server, *number, own))
            })
            .await?;
        Ok(self.member.rates.lock().hear(words))
    }

    async fn contents_removed(
        &self,
        after: Timestamp,
        limit: usize,
    ) -> Result<(Vec<FileId>, Option<Timestamp>)> {
        self.engine
            .read("listing removed contents", &(after, limit), |sql, &(after, limit)| {
                Box::pin(async move {
                    let rows =
                        sql.rows(ABSENT_SINCE, &[&after.as_millis(), &row::limit(limit)]).await?;
                    let (mut files, mut last) = (Vec::new(), after);
                    for row in &rows {
                        last = Timestamp::from_millis(row.try_get(1)?);
                        let is_gone: bool = row.try_get(2)?;
                        if is_gone {
                            // The id of a damaged row has no variants.
                            files.extend(row::parse::<FileId>(row, 0).ok());
                        }
                    }
                    files.dedup();
                    let next = (rows.len() >= limit).then_some(last);
                    Ok((files, next))
                })
            })
            .await
    }

    fn known_secrets(&self) -> SecretsVersion {
        self.member.secrets()
    }

    async fn secrets_version(&self) -> Result<SecretsVersion> {
        let (version, era) = self
            .engine
            .read("looking at the version of the secrets", &(), |sql, ()| {
                Box::pin(async move {
                    sql.be_brief();
                    let as_of = Instant::now();
                    let row = sql.first(SECRETS, &[]).await?;
                    let (number, era) = match row {
                        Some(row) => (row.try_get(0)?, row.try_get(1)?),
                        None => (0, 0),
                    };
                    Ok((SecretsVersion { number, as_of }, Era::from_number(era)))
                })
            })
            .await?;
        self.engine.learn(era);
        Ok(self.member.learn(version))
    }
}

/// Ends all entries.
pub(in crate::metadata::postgres) async fn clear_entries(sql: &Sql) -> Result<(), Fault> {
    sql.execute(CLEAR_ENTRIES, &[]).await.map(drop)
}
