//! The server of a run: all of it, as the binary `filestore-server` starts it, with a plan of sabotage.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use filestore_core::internals::tasks::step::Step;
use filestore_server::{Config, Server};
use tokio::signal::unix::{SignalKind, signal};

/// The exit code that asks a supervisor for a restart.
pub(crate) const POISONED: u8 = 70;

/// The server's configuration, and what is done to it.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The configuration file
    #[arg(long)]
    config: PathBuf,
    /// The data directory
    #[arg(long)]
    data_dir: PathBuf,
    #[command(flatten)]
    sabotage: Sabotage,
}

/// What is done to a process.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Sabotage {
    /// Take a part of the protocol away: fsync, staging or bytes-first
    #[arg(long, value_name = "PART")]
    pub(crate) without: Option<String>,
    /// Kill the process at a step that it has passed so many times: STEP:PASSED
    #[arg(long, value_name = "STEP", hide = true)]
    pub(crate) kill_at: Option<String>,
    /// Append the name of each step to a file
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) step_log: Option<PathBuf>,
    /// Let calls fail: CALL:FROM:COUNT:ERRNO
    #[arg(long, value_name = "FAILURE", hide = true)]
    pub(crate) fail: Option<String>,
}

impl Sabotage {
    /// Returns the arguments that give another process the same plan.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        let Self { without, kill_at, step_log, fail } = self;
        let texts = [
            ("--kill-at", kill_at.clone()),
            ("--without", without.clone()),
            ("--step-log", step_log.as_ref().map(|path| path.display().to_string())),
            ("--fail", fail.clone()),
        ];

        for (name, value) in texts {
            if let Some(value) = value {
                arguments.extend([name.to_owned(), value]);
            }
        }
        arguments
    }

    /// Puts the plan in force for this process.
    pub(crate) fn arm(&self) {
        if !self.arguments().is_empty() {
            self.arm_some();
        }
    }

    #[cfg(feature = "sabotage")]
    fn arm_some(&self) {
        use filestore_core::internals::tasks::sabotage::{Failure, Part, Plan, arm};
        use filestore_core::internals::tasks::step::Call;

        let failure = self.fail.as_ref().map(|text| {
            let parts: Vec<_> = text.split(':').collect();
            let number = |at: usize| parts[at].parse().expect("a number");
            let call = Call::ALL.iter().find(|call| format!("{call:?}") == parts[0]);
            let errno = parts[3].parse().expect("the number of an error");
            Failure { call: *call.expect("a call"), from: number(1), count: number(2), errno }
        });
        let without: Option<Part> =
            self.without.as_ref().map(|part| part.parse().expect("a part of the protocol"));
        let kill_at = self.kill_at.as_ref().map(|text| {
            let (name, passed) = text.split_once(':').expect("a step and a number");
            let step = Step::ALL.iter().find(|step| step.name() == name).expect("a step");
            (*step, passed.parse().expect("a number"))
        });
        arm(Plan { kill_at, log: self.step_log.clone(), failure, without });
    }

    #[cfg(not(feature = "sabotage"))]
    fn arm_some(&self) {
        panic!("built without the feature `sabotage`: add `--features sabotage`");
    }
}

/// Waits until a process with a plan has come to a step, no longer than `patience`.
pub(crate) async fn come_to(step: Step, patience: Duration) {
    #[cfg(feature = "sabotage")]
    let wait = move || filestore_core::internals::tasks::sabotage::await_step(step, patience);
    #[cfg(not(feature = "sabotage"))]
    let wait = move || _ = (step, patience);
    tokio::task::spawn_blocking(wait).await.expect("waiting does not panic");
}

/// Serves until SIGTERM, or until a step or a fault ends the process.
pub(crate) async fn run(options: Options) -> ExitCode {
    let Options { config, data_dir, sabotage } = options;
    filestore_workspace::http::install_crypto();
    sabotage.arm();
    let mut terminate = signal(SignalKind::terminate()).expect("SIGTERM can be caught");
    // A write beyond the limit of file sizes fails like one on a full disk, as in the binary.
    let _file_size = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));

    let mut config = Config::load(&config).expect("the harness wrote a good configuration");
    config.data_dir = data_dir;
    let server = match Server::start(config).await {
        Ok(server) => server,
        Err(error) => {
            eprintln!("crash: {error}");
            return ExitCode::FAILURE;
        }
    };

    // A closed pipe is no reason not to serve.
    let _ = writeln!(std::io::stdout(), "listening on {}", server.url());
    let store = server.store().clone();
    tokio::select! {
        _ = terminate.recv() => {
            server.stop().await;
            ExitCode::SUCCESS
        }
        fault = store.admin().poisoned() => {
            eprintln!("crash: the database must be opened again: {fault}");
            exit_at_once()
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "nothing of this process may run on")]
fn exit_at_once() -> ! {
    std::process::exit(POISONED.into())
}
