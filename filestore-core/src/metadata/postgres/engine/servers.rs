//! The servers that work on the database.

use async_trait::async_trait;

use crate::domain::clock::Timestamp;
use crate::domain::error::Result;
use crate::domain::id::FileId;
use crate::metadata::postgres::{
    PostgresMetadata, entries, leftovers, rate_uses, receipts, servers,
};
use crate::metadata::{Company, SecretsVersion, Servers, ShownWork};
use crate::tasks;

#[async_trait]
impl Servers for PostgresMetadata {
    fn company(&self) -> Company {
        match self.engine.member() {
            Some(member) if !member.identity.is_only => Company::Others,
            _ => Company::Alone,
        }
    }

    fn run_name(&self) -> String {
        self.engine.member().map_or_else(tasks::random_name, |member| member.run_name())
    }

    async fn end_earlier(&self, not_before: Timestamp) -> Result<()> {
        let Some(member) = self.engine.member() else { return Ok(()) };
        let earlier = (member.name().to_owned(), member.epoch(), not_before);
        self.engine
            .write("ending what an earlier process left", earlier, |sql, (name, epoch, until)| {
                Box::pin(leftovers::end_earlier(sql, (name, *epoch), *until))
            })
            .await
    }

    async fn end_gone(&self, not_before: Timestamp) -> Result<u64> {
        let Some(member) = self.engine.member() else { return Ok(0) };
        let wanted = (member.name(), member.gone_after);
        let gone = self
            .engine
            .read("looking for servers that are gone", &wanted, |sql, (name, gone_after)| {
                Box::pin(leftovers::gone(sql, name, *gone_after))
            })
            .await?;

        let mut ended = 0;
        for server in gone {
            let left = (server, member.gone_after, not_before);
            let is_ended = self
                .engine
                .write(
                    "ending what a server left",
                    left,
                    |sql, (server, gone_after, not_before)| {
                        Box::pin(leftovers::end_one(sql, server, *gone_after, *not_before))
                    },
                )
                .await?;
            ended += u64::from(is_ended);
        }
        Ok(ended)
    }

    async fn enter(&self, name: &str, owner: &str) -> Result<bool> {
        let Some(member) = self.engine.member() else { return Ok(true) };
        let entry = (name.to_owned(), owner.to_owned(), member.gone_after);
        self.engine
            .write("entering work", entry, |sql, (name, owner, gone_after)| {
                Box::pin(entries::enter(sql, name, owner, *gone_after))
            })
            .await
    }

    async fn leave(&self, name: &str, owner: &str) -> Result<()> {
        if self.engine.member().is_none() {
            return Ok(());
        }
        self.engine
            .write("ending an entry", (name.to_owned(), owner.to_owned()), |sql, (name, owner)| {
                Box::pin(entries::leave(sql, name, owner))
            })
            .await
    }

    async fn show(&self, name: &str, owner: &str, shown: &str) -> Result<bool> {
        if self.engine.member().is_none() {
            return Ok(false);
        }
        let state = (name.to_owned(), owner.to_owned(), shown.to_owned());
        self.engine
            .write("showing work", state, |sql, (name, owner, shown)| {
                Box::pin(entries::show(sql, name, owner, shown))
            })
            .await
    }

    async fn shown(&self, prefix: &str) -> Result<Vec<ShownWork>> {
        let Some(member) = self.engine.member() else { return Ok(Vec::new()) };
        let wanted = (prefix, member.name(), member.gone_after);
        self.engine
            .read("looking at the work of servers", &wanted, |sql, (prefix, own, gone_after)| {
                Box::pin(entries::shown(sql, prefix, own, *gone_after))
            })
            .await
    }

    async fn tell_to_stop(&self, name: &str) -> Result<bool> {
        let Some(member) = self.engine.member() else { return Ok(false) };
        let wanted = (name.to_owned(), member.gone_after);
        self.engine
            .write("telling work to stop", wanted, |sql, (name, gone_after)| {
                Box::pin(entries::tell_to_stop(sql, name, *gone_after))
            })
            .await
    }

    async fn exchange_uses(&self, own: Vec<(String, u64)>) -> Result<Vec<(String, u64)>> {
        let Some(member) = self.engine.member().filter(|member| !member.identity.is_only) else {
            return Ok(Vec::new());
        };
        if own.is_empty() {
            let server = member.epoch_name();
            let words = self
                .engine
                .read("hearing of uses of limits", &server, |sql, server| {
                    Box::pin(rate_uses::hear(sql, server))
                })
                .await?;
            return Ok(member.rates.lock().hear(words));
        }

        let told = (member.epoch_name(), member.rates.lock().next(), own);
        let words = self
            .engine
            .write("exchanging uses of limits", told, |sql, (server, number, own)| {
                Box::pin(rate_uses::exchange(sql, server, *number, own))
            })
            .await?;
        Ok(member.rates.lock().hear(words))
    }

    async fn contents_removed(
        &self,
        after: Timestamp,
        limit: usize,
    ) -> Result<(Vec<FileId>, Option<Timestamp>)> {
        self.engine
            .read("listing removed contents", &(after, limit), |sql, &(after, limit)| {
                Box::pin(receipts::contents_removed(sql, after, limit))
            })
            .await
    }

    fn known_secrets(&self) -> Option<SecretsVersion> {
        self.engine.member().map(|member| member.secrets())
    }

    async fn secrets_version(&self) -> Result<Option<SecretsVersion>> {
        let Some(member) = self.engine.member() else { return Ok(None) };
        let version = self
            .engine
            .read("looking at the version of the secrets", &(), |sql, ()| {
                Box::pin(async move {
                    sql.be_brief();
                    servers::secrets(sql).await
                })
            })
            .await?;
        Ok(Some(member.learn(version)))
    }
}
