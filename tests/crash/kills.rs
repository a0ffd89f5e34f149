//! Kills at random moments under load.

use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use fastrand::Rng;
use filestore_core::receipts::DeletedBy;
use filestore_workspace::directory_in_memory;
use tempfile::TempDir;

use crate::child::{Child, Start, configuration, text_for};
use crate::disk::Disk;
use crate::image::{FileSystem, Image};
use crate::load::{self, Errors};
use crate::oracle::Oracle;
use crate::serve::Sabotage;
use crate::settle;
use crate::tally::{Kind, Tally, Violation};
use crate::verify::{self, Findings, Flushed};

/// Kills in one life of a store: what has piled up is compared after each of them.
const KILLS_PER_SEED: u64 = 25;

#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// The number of kills in all, shared out among the seeds
    #[arg(long, default_value_t = 10)]
    rounds: u64,

    /// The seeds, as in 0..120; by default as many as the rounds need, from a random one on
    #[arg(long, value_parser = range, value_name = "A..B")]
    seed_range: Option<Range<u64>>,

    /// Cut the power of a simulated disk with each kill
    #[arg(long)]
    power: bool,

    /// Cut the power of a real file system on a loop device with each kill; needs root
    #[arg(long, value_enum, value_name = "KIND", conflicts_with = "power")]
    file_system: Option<FileSystem>,

    /// The configured durability
    #[arg(long, default_value = "full", value_parser = ["full", "process"])]
    durability: String,

    /// Take a part of the protocol away: fsync, staging or bytes-first; the run has to fail
    #[arg(long, value_name = "PART")]
    without: Option<String>,

    /// Append the counts to a file, for `sum`
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// The directory to work in; by default one in memory, where there is one
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let wrong = || format!("a range of seeds is like 0..100, not {text}");
    let (start, end) = text.split_once("..").ok_or_else(wrong)?;
    let range = start.parse().map_err(|_| wrong())?..end.parse().map_err(|_| wrong())?;
    if range.is_empty() { Err(wrong()) } else { Ok(range) }
}

impl Options {
    fn seeds(&self) -> Range<u64> {
        self.seed_range.clone().unwrap_or_else(|| {
            let first = fastrand::u64(..1 << 32);
            first..first + self.rounds.div_ceil(KILLS_PER_SEED).max(1)
        })
    }

    /// Makes a directory for one life.
    pub(crate) fn home(&self) -> TempDir {
        match &self.dir {
            Some(dir) => TempDir::new_in(dir).expect("a directory can be made there"),
            None => directory_in_memory(),
        }
    }
}

/// Runs the rounds and prints the table.
pub(crate) async fn run(options: Options) -> ExitCode {
    let seeds = options.seeds();
    println!("seeds {}..{}", seeds.start, seeds.end);
    let count = seeds.end - seeds.start;
    let mut total = Tally::default();

    for (index, seed) in (0_u64..).zip(seeds) {
        let rounds = options.rounds * (index + 1) / count - options.rounds * index / count;
        let life = match Life::new(seed, options.clone()) {
            Ok(life) => tokio::spawn(life.live(rounds)),
            Err(missing) => {
                eprintln!("NOT TESTED: no file system can be made and mounted here: {missing}");
                return ExitCode::from(UNABLE);
            }
        };
        let tally = life.await.unwrap_or_else(|lost| {
            let mut tally = Tally::default();
            tally.note(seed, &Violation { kind: Kind::Broken, what: lost.to_string() });
            tally
        });

        if let Some(report) = &options.report {
            tally.append_to(report);
        }
        if tally.violations() > 0 {
            eprintln!(
                "the seed {seed} failed; repeat it with --rounds {rounds} --seed-range {seed}..{}",
                seed + 1
            );
        }
        total.merge(&tally);
    }
    total.conclude()
}

/// The exit code of a run that cannot be done here.
const UNABLE: u8 = 77;

/// What a server stands on.
enum Beneath {
    /// The file system of the machine: kills leave everything that was written.
    Nothing,
    Simulated(Disk),
    Mounted(Image),
}

/// The life of one store.
struct Life {
    seed: u64,
    options: Options,
    /// Unmounted before the home goes.
    beneath: Beneath,
    home: TempDir,
    oracle: Oracle,
    tally: Tally,
}

impl Life {
    fn new(seed: u64, options: Options) -> Result<Self, String> {
        let home = options.home();
        let text = text_for(home.path(), &options.durability);
        std::fs::write(home.path().join("filestore.toml"), text).expect("a configuration");
        let beneath = match options.file_system {
            Some(kind) => Beneath::Mounted(Image::mount(kind, home.path())?),
            None if options.power => Beneath::Simulated(Disk::build(home.path())),
            None => Beneath::Nothing,
        };
        Ok(Self {
            seed,
            beneath,
            oracle: Oracle::create(home.path().join("oracle.log")),
            tally: Tally::default(),
            options,
            home,
        })
    }

    async fn live(mut self, rounds: u64) -> Tally {
        let mut random = Rng::with_seed(self.seed);
        self.tally.add("seeds", 1);
        for _ in 0..rounds {
            self.round(&mut random).await;
            if self.tally.violations() > 0 {
                return self.tally;
            }
        }

        // What a power cut took from a process that does not flush may be what removed something.
        if self.options.durability == "full" {
            let findings = settle::check(self.home.path(), &DeletedBy::OpenMode).await;
            self.take(&findings);
        }
        self.tally
    }

    async fn round(&mut self, random: &mut Rng) {
        let server = self.start();
        load::bind(&server).await;
        let before = match self.options.durability.as_str() {
            "full" => Flushed::default(),
            _ => Flushed::at(&server, self.oracle.replay()).await,
        };
        let data_dir = server.data_dir.clone();
        let errors = match self.options.without {
            Some(_) => Errors::Expected,
            None => Errors::Unexpected,
        };
        let end = |server: Child| match &self.beneath {
            Beneath::Nothing => server.kill(),
            Beneath::Mounted(image) => image.cut_power(server),
            Beneath::Simulated(disk) => {
                server.kill();
                disk.cut_power(&data_dir);
            }
        };
        let acknowledged = load::run_until_killed(server, &self.oracle, random, errors, end).await;
        self.tally.add("kills", 1);
        self.tally.add("acknowledgements", acknowledged);
        self.tally.add("power cuts", u64::from(!matches!(self.beneath, Beneath::Nothing)));

        for _ in 0..random.u32(0..3) {
            self.interrupt_a_start(random.u64(0..60_000));
            self.tally.add("starts killed", 1);
        }

        let server = match Child::try_start(self.home.path(), &self.how()) {
            Ok(server) => server,
            Err(status) => {
                let what = format!("no start: {status}");
                return self.tally.note(self.seed, &Violation { kind: Kind::Broken, what });
            }
        };
        let findings = if self.options.durability == "full" {
            verify::whole_store(&server, &self.oracle.replay()).await
        } else {
            verify::what_is_left(&server, &before, &self.oracle.replay()).await
        };
        server.stop();
        self.take(&findings);
    }

    fn take(&mut self, findings: &Findings) {
        self.tally.add("facts compared", findings.facts);
        self.tally.add("files read", findings.files);
        self.tally.add("receipts compared", findings.receipts);
        for violation in &findings.violations {
            self.tally.note(self.seed, violation);
        }
    }

    fn start(&self) -> Child {
        Child::start_with(self.home.path(), &self.how())
    }

    fn how(&self) -> Start<'_> {
        let variables = match &self.beneath {
            Beneath::Simulated(disk) => disk.variables().into(),
            Beneath::Nothing | Beneath::Mounted(_) => Vec::new(),
        };
        let sabotage = Sabotage { without: self.options.without.clone(), ..Sabotage::default() };
        configuration(self.home.path());
        Start { variables, sabotage }
    }

    /// Kills a server while it recovers, after so many microseconds.
    #[expect(clippy::disallowed_methods, reason = "the moment itself is what varies")]
    fn interrupt_a_start(&self, micros: u64) {
        let server = Child::spawn_with(self.home.path(), &self.how());
        std::thread::sleep(Duration::from_micros(micros));
        server.kill();
    }
}
