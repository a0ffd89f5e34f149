//! The fence: up to which event readers may read.
//!
//! # Purpose
//! A position is drawn before its commit, so a later position can be visible first. A reader that went on behind
//! it would never see the earlier one. Readers therefore stop at the last *settled* position: all events up to it
//! are visible, or were rolled back.
//!
//! # How it works
//! A writer locks the table `events` (ROW EXCLUSIVE) before it draws a position, and its commit is visible before
//! the lock goes. So a look reads, in this order:
//! 1. the last position that was drawn
//! 2. the transactions that hold such a lock
//!
//! Once none of these transactions holds it any more, the position is settled. A look without holders settles it
//! at once. Only open writes of events delay readers. Transactions of other programs, and reads, do not.
//!
//! # Failover
//! A standby that takes over can lack commits, and draws their positions again. So a look also reads when the database
//! server was started. If this changes, or the last position is lower than before, nothing counts as settled any more.
//!
//! # Cost
//! One look serves all readers of this process. Nobody looks while nobody reads.

use std::collections::HashSet;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::fault::Fault;
use super::sql::Sql;
use super::transaction::Engine;
use crate::domain::error::Result;

/// The pause between two looks of a waiting reader while a position is about to settle.
const SOON: Duration = Duration::from_millis(30);

/// The pause while no event is under way.
const IDLE: Duration = Duration::from_millis(250);

/// Selects the last drawn position, and the start of the server, which every role can read. A sequence is read without
/// a snapshot.
pub(in crate::metadata::postgres) const DRAWN: &str =
    "SELECT CASE WHEN is_called THEN last_value ELSE 0 END,
     extract(epoch FROM pg_postmaster_start_time())::text FROM events_position_seq";

/// Selects the transactions that can have drawn positions.
pub(in crate::metadata::postgres) const HOLDERS: &str =
    "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation'
     AND relation = 'events'::regclass AND mode = 'RowExclusiveLock' AND granted
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// The settled position, with the state of the next one.
pub(in crate::metadata::postgres) struct Fence {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The start of the server of the last look.
    server: String,
    settled: i64,
    /// The next position to settle.
    pending: Option<Pending>,
    /// The last position that was drawn.
    drawn: i64,
    /// The start of the last look.
    looked_at: Option<Instant>,
}

/// A position that is about to settle.
struct Pending {
    position: i64,
    /// The transactions that were open when the position was read.
    open: HashSet<String>,
    since: Instant,
}

/// What a look reads.
struct Seen {
    /// The start of the server.
    server: String,
    drawn: i64,
    holders: HashSet<String>,
    at: Instant,
}

/// The result of a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::metadata::postgres) struct Look {
    /// Every event up to this position is visible, or never will be.
    pub(in crate::metadata::postgres) settled: i64,
    /// The last position that was drawn.
    drawn: i64,
    /// Since when a later position is about to settle.
    pending_since: Option<Instant>,
}

impl Look {
    /// Returns the number of positions that are not settled, and the time for which an open write has held them back.
    pub(in crate::metadata::postgres) fn held_back(&self) -> (u64, Duration) {
        match self.pending_since {
            Some(since) => ((self.drawn - self.settled).max(0).unsigned_abs(), since.elapsed()),
            None => (0, Duration::ZERO),
        }
    }
}

impl Fence {
    pub(in crate::metadata::postgres) fn new() -> Self {
        Self { state: Mutex::default() }
    }

    /// Returns the settled position. The look begins after this call, so that all events that were acknowledged
    /// before the call are settled, unless an earlier write is open.
    pub(in crate::metadata::postgres) async fn look(&self, engine: &Engine) -> Result<Look> {
        self.look_since(engine, Instant::now()).await
    }

    /// Waits until a position behind `settled` is settled.
    pub(in crate::metadata::postgres) async fn passed(
        &self,
        engine: &Engine,
        settled: i64,
    ) -> Result<()> {
        let mut pause = SOON;
        loop {
            // A look of another reader during the pause is as good.
            let recent = Instant::now().checked_sub(pause).unwrap_or_else(Instant::now);
            let look = self.look_since(engine, recent).await?;
            // Less than before: the database was restored or has failed over. The next read says so.
            if look.settled != settled {
                return Ok(());
            }
            pause = if look.pending_since.is_some() { SOON } else { IDLE };
            tokio::time::sleep(pause).await;
        }
    }

    /// Looks, unless another reader has begun to look at `since` or later.
    async fn look_since(&self, engine: &Engine, since: Instant) -> Result<Look> {
        let mut state = self.state.lock().await;
        if state.looked_at.is_none_or(|looked_at| looked_at < since) {
            let began = Instant::now();
            let seen =
                engine.read("looking for events", &(), |sql, ()| Box::pin(look(sql))).await?;
            state.learn(seen);
            state.looked_at = Some(began);
        }
        let pending_since = state.pending.as_ref().map(|pending| pending.since);
        Ok(Look { settled: state.settled, drawn: state.drawn, pending_since })
    }
}

impl State {
    fn learn(&mut self, Seen { server, drawn, holders, at }: Seen) {
        if drawn < self.settled || server != self.server {
            *self = Self { server, ..Self::default() };
        }
        self.drawn = drawn;
        if let Some(pending) = &self.pending
            && pending.open.is_disjoint(&holders)
        {
            self.settled = self.settled.max(pending.position);
            self.pending = None;
        }
        if holders.is_empty() {
            self.settled = self.settled.max(drawn);
            self.pending = None;
        } else if self.pending.is_none() && drawn > self.settled {
            self.pending = Some(Pending { position: drawn, open: holders, since: at });
        }
    }
}

/// Reads the last position first, and the holders after it.
async fn look(sql: &Sql) -> Result<Seen, Fault> {
    let (drawn, server) = match sql.first(DRAWN, &[]).await? {
        Some(row) => (row.try_get(0)?, row.try_get(1)?),
        None => (0, String::new()),
    };
    let holders = sql.rows(HOLDERS, &[]).await?;
    let holders = holders.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    Ok(Seen { server, drawn, holders, at: Instant::now() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen<const N: usize>(server: &str, drawn: i64, holders: [&str; N]) -> Seen {
        let (server, at) = (server.to_owned(), Instant::now());
        Seen { server, drawn, holders: holders.map(str::to_owned).into(), at }
    }

    #[test]
    fn a_position_settles_when_those_who_were_open_have_ended() {
        let mut state = State::default();
        state.learn(seen("one", 5, []));
        assert_eq!((state.settled, state.pending.is_some()), (5, false));

        state.learn(seen("one", 7, ["1/1", "2/1"]));
        assert_eq!((state.settled, state.pending.is_some()), (5, true));
        state.learn(seen("one", 9, ["2/1", "3/1"]));
        assert_eq!((state.settled, state.pending.is_some()), (5, true));
        // The second one is gone; the third began later, and delays the next position only.
        state.learn(seen("one", 9, ["3/1"]));
        assert_eq!((state.settled, state.pending.is_some()), (7, true));
        state.learn(seen("one", 9, ["3/2"]));
        assert_eq!(state.settled, 9);
        // A database that failed over draws positions a second time.
        state.learn(seen("one", 8, ["3/2"]));
        assert_eq!(state.settled, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_tells_how_long_an_open_write_has_held_positions_back() {
        let mut state = State::default();
        let look = |state: &State| Look {
            settled: state.settled,
            drawn: state.drawn,
            pending_since: state.pending.as_ref().map(|pending| pending.since),
        };
        state.learn(seen("one", 5, []));
        assert_eq!(look(&state).held_back(), (0, Duration::ZERO));

        state.learn(seen("one", 7, ["1/1"]));
        tokio::time::advance(Duration::from_secs(9)).await;
        state.learn(seen("one", 8, ["1/1", "2/1"]));
        assert_eq!(look(&state).held_back(), (3, Duration::from_secs(9)));
        state.learn(seen("one", 8, []));
        assert_eq!(look(&state).held_back(), (0, Duration::ZERO));
    }

    #[test]
    fn another_server_settles_its_positions_anew() {
        let mut state = State::default();
        state.learn(seen("one", 5, []));
        // It lost position 5, and has drawn it again before this look.
        state.learn(seen("two", 7, ["1/1"]));
        assert_eq!((state.settled, state.pending.is_some()), (0, true));
        state.learn(seen("two", 8, ["2/1"]));
        assert_eq!(state.settled, 7);
        state.learn(seen("two", 8, []));
        assert_eq!(state.settled, 8);
    }
}
