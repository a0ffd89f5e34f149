//! Entries: what one server alone does at a time (`under_way`).

use std::time::Duration;

use crate::metadata::ShownWork;

use super::fault::Fault;
use super::sql::Sql;

/// SQL that tells whether the server of `$owner` was seen within the last `$secs` seconds.
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

/// An entry of a server that is gone makes room.
pub(super) const ENTER: &str = concat!(
    "INSERT INTO under_way AS entry (name, owner) VALUES ($1, $2)
     ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, shown = NULL, is_told_to_stop = false
     WHERE NOT ",
    lives!("entry.owner", "$3")
);

pub(super) const LEAVE: &str = "DELETE FROM under_way WHERE name = $1 AND owner = $2";

pub(super) const SHOW: &str =
    "UPDATE under_way SET shown = $3 WHERE name = $1 AND owner = $2 RETURNING is_told_to_stop";

/// Those of servers other than `$3` that live. `chr(1114111)` comes after every text.
pub(super) const SHOWN: &str = concat!(
    "SELECT name, shown FROM under_way
     WHERE name >= $1 AND name < $1 || chr(1114111) AND shown IS NOT NULL AND split_part(owner, '.', 1) <> $3
     AND ",
    lives!("owner", "$2"),
    " ORDER BY name"
);

pub(super) const TELL_TO_STOP: &str = concat!(
    "UPDATE under_way SET is_told_to_stop = true WHERE name = $1 AND ",
    lives!("owner", "$2")
);

pub(super) const CLEAR_ENTRIES: &str = "DELETE FROM under_way";

/// An entry is worth no wait for the disk: at the worst a server that crashed with it is asked to do
/// something twice.
const LAZILY: &str = "SET LOCAL synchronous_commit TO off";

pub(super) async fn enter(
    sql: &Sql,
    name: &str,
    owner: &str,
    gone_after: Duration,
) -> Result<bool, Fault> {
    sql.batch(LAZILY).await?;
    Ok(sql.execute(ENTER, &[&name, &owner, &gone_after.as_secs_f64()]).await? > 0)
}

pub(super) async fn leave(sql: &Sql, name: &str, owner: &str) -> Result<(), Fault> {
    sql.batch(LAZILY).await?;
    sql.execute(LEAVE, &[&name, &owner]).await.map(drop)
}

/// Shows how far the work of an entry has come; true if it is to stop.
pub(super) async fn show(sql: &Sql, name: &str, owner: &str, shown: &str) -> Result<bool, Fault> {
    sql.batch(LAZILY).await?;
    let row = sql.first(SHOW, &[&name, &owner, &shown]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or(false))
}

/// Lists what other servers show of entries whose names begin with `prefix`.
pub(super) async fn shown(
    sql: &Sql,
    prefix: &str,
    own: &str,
    gone_after: Duration,
) -> Result<Vec<ShownWork>, Fault> {
    let rows = sql.rows(SHOWN, &[&prefix, &gone_after.as_secs_f64(), &own]).await?;
    let works =
        rows.iter().map(|row| Ok(ShownWork { name: row.try_get(0)?, shown: row.try_get(1)? }));
    works.collect()
}

/// Asks that the work of an entry stops; false if no server that lives has such an entry.
pub(super) async fn tell_to_stop(
    sql: &Sql,
    name: &str,
    gone_after: Duration,
) -> Result<bool, Fault> {
    Ok(sql.execute(TELL_TO_STOP, &[&name, &gone_after.as_secs_f64()]).await? > 0)
}

/// Ends all entries.
pub(super) async fn clear(sql: &Sql) -> Result<(), Fault> {
    sql.execute(CLEAR_ENTRIES, &[]).await.map(drop)
}
