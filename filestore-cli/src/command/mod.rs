//! The commands, one file per group.

mod upload;
mod get;
mod ids;
mod file;
mod binding;
mod key;
mod webhook;
mod fsck;
pub(crate) mod backup;
mod metadata;
mod migrate;
mod organization;
mod sign;
mod purge;
mod sync;
mod uploads;
mod events;
mod variants;
mod usage;
mod whoami;
mod status;
mod explain;

use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{BindingCommand, Cli, Command, GlobalArgs, KeyCommand, PurgeCommand};
use crate::failure::{Exit, Failure, Result};
use crate::output::{Output, plain};
use crate::store;
use crate::store::{Absent, Opened};

/// Runs a command and returns the exit status of the process.
pub(crate) async fn run(cli: Cli) -> ExitCode {
    let out = Output::new(&cli.global);
    let stop = watch::Sender::new(false);
    // Before the command starts, because its first step might already need a cleanup.
    let signals = Signals::new();
    let exit = tokio::select! {
        outcome = execute(cli, out, &stop) => outcome.unwrap_or_else(|failure| {
            out.failure(&failure);
            failure.exit()
        }),
        // Dropping the command discards what is not acknowledged: staged bytes, unfinished
        // downloads.
        signal = interrupted(signals, &stop) => signal,
    };

    exit.into()
}

/// Resolves when the command must end: at the first Ctrl-C or SIGTERM, or at the second one if the
/// command handles the first.
async fn interrupted(mut signals: Signals, stop: &watch::Sender<bool>) -> Exit {
    let first = signals.next().await;
    // `send` fails if the command does not listen.
    if stop.send(true).is_ok() { signals.next().await } else { first }
}

/// The signals that stop the command. SIGHUP is not among them, because a handler would break
/// `nohup`.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> Self {
        Self {
            interrupt: caught(SignalKind::interrupt()),
            terminate: caught(SignalKind::terminate()),
        }
    }

    /// Waits for the next signal.
    async fn next(&mut self) -> Exit {
        tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
        }
    }
}

fn caught(kind: SignalKind) -> Signal {
    signal(kind).expect("SIGINT and SIGTERM can be caught")
}

/// Sends the log of core and client to stderr. `FILESTORE_LOG` sets the level.
pub(crate) fn start_log(args: &GlobalArgs) {
    let wanted = std::env::var("FILESTORE_LOG").ok().and_then(|text| text.parse::<Targets>().ok());
    let (default_level, exposed_level) = if args.quiet {
        (LevelFilter::OFF, LevelFilter::OFF)
    } else {
        (LevelFilter::ERROR, LevelFilter::WARN)
    };
    // The error of the command already reports an untrusted certificate.
    let default_filter = Targets::new().with_default(default_level);
    let default_filter = default_filter.with_target("rustls_platform_verifier", LevelFilter::OFF);
    // The warnings about files and directories that other accounts can change.
    let default_filter = default_filter.with_target("filestore_core::exposed", exposed_level);
    let filter = wanted.unwrap_or(default_filter);

    let has_colours = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(has_colours);
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
}

async fn execute(cli: Cli, out: Output, stop: &watch::Sender<bool>) -> Result<Exit> {
    if let Command::Completions { shell } = cli.command {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "filestore", &mut script);
        Output::raw(&script)?;
        return Ok(Exit::Done);
    }

    if let Command::Man { directory } = &cli.command {
        return write_manual(directory);
    }

    if let Command::Key(KeyCommand::Generate) = cli.command {
        return key::generate(out);
    }

    if let Command::Purge(PurgeCommand::Receipt { verify: Some(file), public_key, keys, .. }) =
        &cli.command
    {
        let signer = purge::receipt::Signer::of(public_key.as_deref(), keys.as_deref())?;
        return purge::receipt::verify(file, &signer, out);
    }

    if let Command::Metadata(command) = cli.command {
        return metadata::run(command, cli.global.configuration(), out).await;
    }

    if let Command::Backup(command) = &cli.command
        && let Some(exit) = backup::without_store(command, &cli.global.address()?, out).await?
    {
        return Ok(exit);
    }

    let opened = store::open(cli.global.address()?, if_absent(&cli.command)).await?;
    let outcome = on_target(cli.command, &opened, out, stop).await;
    opened.target.close().await;
    outcome
}

/// `man`: writes a manual page for each command.
fn write_manual(directory: &Path) -> Result<Exit> {
    let doing = format!("cannot write manual pages to {}", plain(&directory.display().to_string()));
    let written = std::fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory));
    written.map_err(|e| Failure::io(doing, &e))?;
    Ok(Exit::Done)
}

/// Returns the treatment of a missing data directory.
fn if_absent(command: &Command) -> Absent {
    match command {
        Command::Upload(_)
        | Command::Batch(_)
        | Command::Binding(BindingCommand::Create { .. })
        | Command::Key(KeyCommand::Create { .. }) => Absent::Create,
        _ => Absent::Refuse,
    }
}

async fn on_target(
    command: Command,
    opened: &Opened,
    out: Output,
    stop: &watch::Sender<bool>,
) -> Result<Exit> {
    let target = &*opened.target;
    match command {
        Command::Upload(args) => match args.recursive.clone() {
            Some(dir) => upload::recursive(&dir, args, opened, out).await,
            None => upload::run(args, opened, out).await,
        },
        Command::Batch(args) => upload::batch(args, target, out).await,
        Command::Get(args) => get::run(args, target, out).await,
        Command::Variant(args) => get::variant(args, target, out).await,
        Command::Sheet(args) => get::sheet(args, target, out).await,
        Command::Info(args) => file::info(&args.id, target, out).await,
        Command::Explain(args) => explain::run(&args.id, target, out).await,
        Command::List(args) => file::list(args, target, out).await,
        Command::Events(args) => events::run(args, target, out).await,
        Command::Thumbnail(args) => file::thumbnail(&args.id, target, out).await,
        Command::Ready(args) => file::ready(args, target, out).await,
        Command::Replace(args) => file::replace(args, target, out).await,
        Command::Edit(args) => file::edit(args, target, out).await,
        Command::Delete(args) => file::delete(args, target, out).await,
        Command::Restore(args) => file::restore::run(args.ids, target, out).await,

        Command::Sign(args) => sign::file(&args, target, out).await,
        Command::SignUpload(args) => sign::upload(args, target, out).await,
        Command::Signing(command) => sign::secrets(command, target, out).await,
        Command::Provider(command) => binding::provider(command, target, out).await,
        Command::Binding(command) => binding::run(command, target, out).await,
        Command::Key(command) => key::run(command, target, out).await,
        Command::Webhook(command) => webhook::run(command, target, out).await,

        Command::Purge(command) => purge::run(command, target, out).await,
        Command::Sync(command) => sync::run(command, target, out).await,
        Command::Organization(command) => organization::run(command, target, out, stop).await,
        Command::Fsck(args) => fsck::run(args, target, out, stop).await,
        Command::Migrate(command) => migrate::run(command, target, out, stop).await,
        Command::Backup(command) => backup::run(command, target, out).await,
        Command::Variants(command) => variants::run(command, target, out).await,
        Command::Uploads(command) => uploads::run(command, target, out).await,
        Command::Usage { org } => usage::run(&org, target, out).await,
        Command::Whoami => whoami::run(target, out).await,
        Command::Status => status::run(target, out).await,
        Command::Health => status::health(target, out).await,

        Command::Metadata(_) | Command::Completions { .. } | Command::Man { .. } => {
            unreachable!("needs no target and ran before")
        }
    }
}
