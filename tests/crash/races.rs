//! Two kinds of work at once on one file, every kind beside every other one, with readers throughout.
//!
//! Each call is written down with the moments at which it began and ended. Afterwards there must be an
//! order of the calls, in which none comes before one that had ended when it began, that explains each
//! answer: as if they had come one after the other. A reader gets one whole content or none.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use fastrand::Rng;
use filestore_core::admin::{
    BackupOptions, Backups, FsckDepth, FsckMode, FsckOptions, MigrateOptions, NoProgress,
};
use filestore_core::bindings::NewBinding;
use filestore_core::{ErrorKind, FileId, FileStore, NewUpload, Result, Scope};
use filestore_server::Config;
use filestore_workspace::directory_in_memory;
use tempfile::TempDir;

use crate::child::{ATTIC, configuration};
use crate::content::{self, Tag};
use crate::tally::{Kind, Tally, Violation};

#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Rounds of each pair
    #[arg(long, default_value_t = 20)]
    rounds: u64,

    /// Rounds of each pair of upload, replace, delete, sync and purge, if more
    #[arg(long, default_value_t = 0)]
    core_rounds: u64,

    /// The seed of the first round
    #[arg(long)]
    seed: Option<u64>,

    /// Append the counts to a file, for `sum`
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// A kind of work on the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Work {
    Upload,
    Replace,
    Delete,
    Restore,
    Sync,
    Migrate,
    Purge,
    Read,
    Variant,
    /// A check that reads and repairs everything, and must find nothing.
    Fsck,
    /// A snapshot of the whole store.
    Backup,
}

impl Work {
    const ALL: [Self; 11] = [
        Self::Upload,
        Self::Replace,
        Self::Delete,
        Self::Restore,
        Self::Sync,
        Self::Migrate,
        Self::Purge,
        Self::Read,
        Self::Variant,
        Self::Fsck,
        Self::Backup,
    ];

    fn is_of_the_core(self) -> bool {
        use Work::{Delete, Purge, Replace, Sync, Upload};
        matches!(self, Upload | Replace | Delete | Sync | Purge)
    }
}

/// The answer of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Done,
    /// A read gave this whole content.
    Content(Tag),
    NotFound,
    /// Another change was faster.
    Conflict,
    /// The purge has claimed the file.
    Purging,
    /// An answer that no state of the file explains.
    Wrong,
}

/// A call, as the history has it.
#[derive(Debug, Clone, Copy)]
struct Call {
    work: Work,
    /// The content that a replace brings.
    tag: Tag,
    answer: Answer,
    began: u64,
    ended: u64,
}

/// A state of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum State {
    Live(Tag),
    Deleted(Tag),
    Gone,
}

/// Reads of each of the two readers.
const READS: usize = 3;

/// Runs the pairs and prints the table.
pub(crate) async fn run(options: Options) -> ExitCode {
    let first = options.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    println!("the first seed is {first}");
    let arena = Arena::open().await;
    let mut tally = Tally::default();
    let mut seed = first;

    for (at, one) in Work::ALL.into_iter().enumerate() {
        for other in Work::ALL.into_iter().skip(at) {
            let is_of_the_core = one.is_of_the_core() && other.is_of_the_core();
            let rounds = if is_of_the_core {
                options.rounds.max(options.core_rounds)
            } else {
                options.rounds
            };
            for _ in 0..rounds {
                arena.round(seed, [one, other], &mut tally).await;
                seed += 1;
            }
            tally.add("pairs", 1);
            tally.add("rounds", rounds);
        }
    }

    if let Some(report) = &options.report {
        tally.append_to(report);
    }
    tally.conclude()
}

/// A store whose files are raced for.
struct Arena {
    store: FileStore,
    backups: Backups,
    clock: AtomicU64,
    tags: AtomicU64,
    _home: TempDir,
}

impl Arena {
    async fn open() -> Arc<Self> {
        let home = directory_in_memory();
        let mut config = Config::load(configuration(home.path())).expect("a good configuration");
        config.store.purge_grace = Duration::ZERO;
        let builder = FileStore::builder(home.path().join("data")).config(config.store);
        let store = builder.open().await.expect("the store opens");

        let number = 1_i64.try_into().expect("a number");
        let attic = ATTIC.parse().expect("a code");
        let binding = NewBinding::new(number, "x", attic).with_sync();
        store.bindings().create(binding).await.expect("a binding");
        let backups = Backups::create(home.path().join("backups")).await.expect("a destination");
        let (clock, tags) = (AtomicU64::new(0), AtomicU64::new(1));
        Arc::new(Self { store, backups, clock, tags, _home: home })
    }

    /// Races two kinds of work for a fresh file, and checks the history.
    async fn round(self: &Arc<Self>, seed: u64, works: [Work; 2], tally: &mut Tally) {
        let mut random = Rng::with_seed(seed);
        let (id, tag) = match self.fresh_file().await {
            Ok(fresh) => fresh,
            Err(error) => {
                let what = format!("{works:?}: an upload failed: {}", error.chain());
                return tally.note(seed, &Violation { kind: Kind::Broken, what });
            }
        };
        let mut start = State::Live(tag);
        if works.contains(&Work::Restore) && random.bool() {
            let deleted = self.store.scoped(&Scope::All).delete(id).await;
            start = if deleted.is_ok() { State::Deleted(tag) } else { start };
        }

        let mut racing = Vec::new();
        for works in
            [vec![works[0]], vec![works[1]], vec![Work::Read; READS], vec![Work::Read; READS]]
        {
            let (arena, delay) = (Arc::clone(self), random.u32(..40));
            racing.push(tokio::spawn(async move { arena.call_each(id, works, delay).await }));
        }
        let mut history = Vec::new();
        for calls in racing {
            match calls.await.expect("a call does not panic") {
                Ok(calls) => history.extend(calls),
                Err(what) => return tally.note(seed, &Violation { kind: Kind::Broken, what }),
            }
        }
        match self.call_each(id, vec![Work::Read], 0).await {
            Ok(calls) => history.extend(calls),
            Err(what) => return tally.note(seed, &Violation { kind: Kind::Broken, what }),
        }

        tally.add("calls", history.len() as u64);
        if !explains(start, &history) {
            let what = format!("{works:?}: no order explains {start:?}, {history:#?}");
            tally.note(seed, &Violation { kind: Kind::Mixed, what });
        }
        // Nothing is left for the next rounds to do.
        if let Ok(record) = self.store.scoped(&Scope::All).info(id).await
            && !record.state.is_deleted()
        {
            self.store.scoped(&Scope::All).delete(id).await.ok();
        }
    }

    async fn fresh_file(&self) -> Result<(FileId, Tag)> {
        // A picture, as variants are asked for.
        let tag = self.fresh_tag();
        let new = NewUpload::new("1".parse()?, "races".parse()?);
        let record = self.store.upload(new, &content::of(tag)[..]).await?;
        Ok((record.file_id, tag))
    }

    fn fresh_tag(&self) -> Tag {
        8 * self.tags.fetch_add(1, Ordering::SeqCst)
    }

    fn tick(&self) -> u64 {
        self.clock.fetch_add(1, Ordering::SeqCst)
    }

    /// Does work one after the other, after a moment; an error is an answer that nobody may get.
    async fn call_each(
        &self,
        id: FileId,
        works: Vec<Work>,
        delay: u32,
    ) -> std::result::Result<Vec<Call>, String> {
        for _ in 0..delay {
            tokio::task::yield_now().await;
        }

        let mut calls = Vec::new();
        for work in works {
            let tag = self.fresh_tag();
            let began = self.tick();
            let outcome = self.call(id, work, tag).await;
            let ended = self.tick();
            let answer = match outcome {
                Ok(answer) => answer,
                Err(error) => match error.kind() {
                    ErrorKind::NotFound => Answer::NotFound,
                    ErrorKind::Conflict => Answer::Conflict,
                    ErrorKind::AlreadyPurging => Answer::Purging,
                    ErrorKind::Locked if work == Work::Backup => Answer::Conflict,
                    _ => return Err(format!("{work:?} failed: {}", error.chain())),
                },
            };
            calls.push(Call { work, tag, answer, began, ended });
        }
        Ok(calls)
    }

    async fn call(&self, id: FileId, work: Work, tag: Tag) -> Result<Answer> {
        let (store, admin) = (&self.store, self.store.admin());
        let organization = 1_i64.try_into().expect("a number");
        match work {
            Work::Upload => self.fresh_file().await.map(drop)?,
            Work::Replace => {
                store.scoped(&Scope::All).replace(id, &content::of(tag)[..]).await.map(drop)?;
            }
            Work::Delete => store.scoped(&Scope::All).delete(id).await.map(drop)?,
            Work::Restore => store.scoped(&Scope::All).restore(id).await.map(drop)?,
            Work::Sync => admin.sync(Arc::new(NoProgress)).await.map(drop)?,
            Work::Migrate => {
                let options = MigrateOptions::default();
                let to = ATTIC.parse()?;
                admin
                    .migrate(organization, &to, options, &|| false, Arc::new(NoProgress))
                    .await
                    .map(drop)?;
            }
            Work::Purge => admin.purge(&NoProgress).await.map(drop)?,
            Work::Variant => store.scoped(&Scope::All).variant(id, 200).await.map(drop)?,
            Work::Read => {
                let bytes = store.scoped(&Scope::All).read(id).await?;
                return Ok(content::identify(&bytes).map_or(Answer::Wrong, Answer::Content));
            }
            Work::Fsck => return self.check().await,
            Work::Backup => return self.back_up().await,
        }
        Ok(Answer::Done)
    }

    async fn check(&self) -> Result<Answer> {
        let mut options = FsckOptions::default();
        (options.depth, options.mode) = (FsckDepth::Deep, FsckMode::Repair);
        let report = self.store.admin().fsck(options, &|| false, &NoProgress).await?;
        if report.found > 0 {
            eprintln!("a check found {:?}", report.findings);
        }
        Ok(if report.found == 0 { Answer::Done } else { Answer::Wrong })
    }

    async fn back_up(&self) -> Result<Answer> {
        let options = BackupOptions::default();
        let report =
            self.store.admin().backup(&self.backups, options, Arc::new(NoProgress)).await?;
        if !report.faults.is_empty() {
            eprintln!("a snapshot lacks {:?}", report.faults);
        }
        self.backups.prune(NonZeroUsize::MIN, Arc::new(NoProgress)).await?;
        Ok(if report.faults.is_empty() { Answer::Done } else { Answer::Wrong })
    }
}

/// Finds out whether some order of the calls explains every answer.
fn explains(start: State, history: &[Call]) -> bool {
    let mut seen = HashSet::new();
    let all = (1_u64 << history.len()) - 1;
    let mut open = vec![(start, 0_u64)];

    while let Some((state, done)) = open.pop() {
        if done == all {
            return true;
        }
        if !seen.insert((state, done)) {
            continue;
        }
        let left = || (0..history.len()).filter(|at| done & (1 << at) == 0);
        let first_end = left().map(|at| history[at].ended).min().unwrap_or(u64::MAX);
        for at in left().filter(|at| history[*at].began < first_end) {
            for next in after(state, &history[at], history) {
                open.push((next, done | (1 << at)));
            }
        }
    }
    false
}

/// Returns the states that `call` may lead to from `state` with the answer that it had.
#[expect(clippy::match_same_arms, reason = "each line is a rule of its own")]
fn after(state: State, call: &Call, history: &[Call]) -> Vec<State> {
    use State::{Deleted, Gone, Live};

    let purges = || history.iter().any(|other| other.work == Work::Purge);
    let changes_besides = || {
        let is_change = |work| matches!(work, Work::Replace | Work::Delete | Work::Restore);
        history.iter().filter(|other| is_change(other.work)).count() > 1
    };
    let is_there = matches!(state, Live(_));
    match (call.work, call.answer, state) {
        (Work::Purge, Answer::Done, Deleted(_)) => vec![state, Gone],
        (Work::Upload | Work::Purge | Work::Sync | Work::Migrate, Answer::Done, _)
        | (Work::Sync | Work::Migrate, Answer::Conflict, _)
        | (Work::Fsck | Work::Backup, Answer::Done | Answer::Conflict, _) => vec![state],
        (Work::Read, Answer::Content(tag), Live(there)) if tag == there => vec![state],
        (Work::Read | Work::Variant | Work::Replace, Answer::NotFound, _) if !is_there => {
            vec![state]
        }
        (Work::Variant, Answer::Done, Live(_)) => vec![state],
        (Work::Replace, Answer::Done, Live(_)) => vec![Live(call.tag)],
        (Work::Replace | Work::Delete | Work::Restore, Answer::Conflict, _)
            if changes_besides() =>
        {
            vec![state]
        }
        (Work::Delete, Answer::Done, Live(tag) | Deleted(tag)) => vec![Deleted(tag)],
        (Work::Delete | Work::Restore, Answer::NotFound, Gone) => vec![state],
        (Work::Restore, Answer::Done, Live(tag) | Deleted(tag)) => vec![Live(tag)],
        (Work::Restore, Answer::Purging, Deleted(_) | Gone) if purges() => vec![state],
        _ => Vec::new(),
    }
}

/// Checks that the checker refuses what cannot have happened.
pub(crate) fn check_itself() {
    let call = |work, answer, began, ended| Call { work, tag: 9, answer, began, ended };
    let replaced = call(Work::Replace, Answer::Done, 0, 5);
    let old = |began, ended| call(Work::Read, Answer::Content(1), began, ended);
    let new = |began, ended| call(Work::Read, Answer::Content(9), began, ended);
    let start = State::Live(1);

    assert!(explains(start, &[replaced, old(1, 2), new(3, 4), new(6, 7)]));
    assert!(!explains(start, &[replaced, new(1, 2), old(3, 4)]), "back in time");
    assert!(!explains(start, &[replaced, old(6, 7)]), "a stale read");
    assert!(!explains(start, &[call(Work::Read, Answer::Wrong, 0, 1)]), "a mixture");
    assert!(!explains(start, &[call(Work::Fsck, Answer::Wrong, 0, 1)]), "a sound store");
    let deleted = call(Work::Delete, Answer::Done, 0, 1);
    assert!(!explains(start, &[deleted, old(2, 3)]), "a deleted file that is read");
    assert!(!explains(start, &[call(Work::Read, Answer::NotFound, 0, 1)]), "a lost file");
}
