//! Exchanges the use counts of rate limits between servers.
//!
//! # Bounds
//! A server regularly writes its counts to one row, and reads the counts that others wrote in the last
//! seconds. It remembers the numbers of the rows that it has read. Each server writes its rows in sequence,
//! so no later row has a lower number. Counts from an outage of the database, or from earlier times, are
//! lost. Each server then counts alone.

use std::collections::BTreeMap;

use tokio_postgres::Row;

use crate::metadata::postgres::session::fault::Fault;
use crate::metadata::postgres::session::sql::Sql;

const TELL: &str = "INSERT INTO rate_uses (server, number, told_at, clients, uses)
     VALUES ($1, $2, clock_timestamp(), $3, $4) ON CONFLICT DO NOTHING";

const HEAR: &str = "SELECT server, number, clients, uses FROM rate_uses
     WHERE server <> $1 AND told_at > clock_timestamp() - interval '15 seconds' ORDER BY server, number";

const FORGET: &str =
    "DELETE FROM rate_uses WHERE told_at < clock_timestamp() - interval '1 minute'";

/// Requests of clients, by name.
pub(super) type Uses = Vec<(String, u64)>;

/// The state of one server: the number of its reports, and the last report from each other server.
#[derive(Debug, Default)]
pub(in crate::metadata::postgres) struct Told {
    number: i64,
    /// The last number read from each other server.
    heard: BTreeMap<String, i64>,
}

/// A row that another server wrote.
pub(in crate::metadata::postgres) struct Word {
    server: String,
    number: i64,
    uses: Uses,
}

impl Told {
    /// Returns the number of this server's next report.
    pub(in crate::metadata::postgres) fn next(&mut self) -> i64 {
        self.number += 1;
        self.number
    }

    /// Returns the counts that are new, and forgets servers that are silent.
    pub(in crate::metadata::postgres) fn hear(&mut self, words: Vec<Word>) -> Uses {
        let before = std::mem::take(&mut self.heard);
        let mut uses = Vec::new();
        for word in words {
            if before.get(&word.server).is_none_or(|last| word.number > *last) {
                uses.extend(word.uses);
            }
            let last = self.heard.entry(word.server).or_default();
            *last = (*last).max(word.number);
        }
        uses
    }
}

/// Reports the requests of this server's clients, and returns the reports of others.
pub(in crate::metadata::postgres) async fn exchange(
    sql: &Sql,
    server: &str,
    number: i64,
    own: &Uses,
) -> Result<Vec<Word>, Fault> {
    let clients: Vec<&str> = own.iter().map(|(client, _)| client.as_str()).collect();
    let uses: Result<Vec<i64>, _> = own.iter().map(|(_, uses)| i64::try_from(*uses)).collect();
    sql.execute(TELL, &[&server, &number, &clients, &uses?]).await?;
    sql.execute(FORGET, &[]).await?;
    hear(sql, server).await
}

/// Returns the reports of others without writing.
pub(in crate::metadata::postgres) async fn hear(
    sql: &Sql,
    server: &str,
) -> Result<Vec<Word>, Fault> {
    sql.rows(HEAR, &[&server]).await?.iter().map(word).collect()
}

fn word(row: &Row) -> Result<Word, Fault> {
    let (clients, uses): (Vec<String>, Vec<i64>) = (row.try_get(2)?, row.try_get(3)?);
    let uses = clients.into_iter().zip(uses);
    let uses = uses.map(|(client, uses)| (client, u64::try_from(uses).unwrap_or(0)));
    Ok(Word { server: row.try_get(0)?, number: row.try_get(1)?, uses: uses.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(server: &str, number: i64, uses: u64) -> Word {
        Word { server: server.to_owned(), number, uses: vec![("client".to_owned(), uses)] }
    }

    fn sum(uses: &Uses) -> u64 {
        uses.iter().map(|(_, uses)| uses).sum()
    }

    #[test]
    fn each_word_is_heard_once() {
        let mut told = Told::default();
        assert_eq!(sum(&told.hear(vec![word("a", 1, 1), word("b", 7, 10)])), 11);
        assert_eq!(
            sum(&told.hear(vec![word("a", 1, 1), word("a", 2, 100), word("b", 7, 10)])),
            100
        );
        assert_eq!(sum(&told.hear(Vec::new())), 0);
        assert_eq!((told.next(), told.next()), (1, 2));
    }
}
