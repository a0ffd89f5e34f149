//! The commands, one file per group.

mod upload;
mod recursive;
mod journal;
mod walk;
mod get;
mod file;
mod binding;
mod key;
mod admin;
mod fsck;
pub(crate) mod backup;
mod metadata;
mod migrate;
mod organization;
mod receipt;
mod sign;
mod status;

use std::process::ExitCode;

use clap::CommandFactory;
use filestore_core::api::DryRun;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::{
    BindingCommand, Cli, Command, GlobalArgs, KeyCommand, ProviderCommand, PurgeCommand,
    SyncCommand, VariantsCommand,
};
use crate::failure::{Exit, Result};
use crate::output::Output;
use crate::target::{self, Absent, Opened};

/// Carries out a command and returns the exit status of the process.
pub(crate) async fn run(cli: Cli) -> ExitCode {
    let out = Output::new(&cli.global);
    let stop = watch::Sender::new(false);
    // Before the command, which may leave something to clean up from its first step on.
    let signals = Signals::new();
    let exit = tokio::select! {
        outcome = carry_out(cli, out, &stop) => outcome.unwrap_or_else(|failure| {
            out.failure(&failure);
            failure.exit()
        }),
        // Dropping the command discards what is not acknowledged: staged bytes, unfinished
        // downloads.
        signal = interrupted(signals, &stop) => signal,
    };

    exit.into()
}

/// Resolves when the command is to be dropped: at the first Ctrl-C or SIGTERM, or at the second one if
/// the command listens to the first.
async fn interrupted(mut signals: Signals, stop: &watch::Sender<bool>) -> Exit {
    let first = signals.next().await;
    // `send` fails if nobody listens.
    if stop.send(true).is_ok() { signals.next().await } else { first }
}

/// The signals that ask for the end. SIGHUP is none of them: `nohup` has it ignored, and a handler would
/// undo that.
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

    /// Waits for the next of them.
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

/// Sends the log of core and client to stderr; `FILESTORE_LOG` says how much of it.
pub(crate) fn start_log(args: &GlobalArgs) {
    let wanted = std::env::var("FILESTORE_LOG").ok().and_then(|text| text.parse::<Targets>().ok());
    let default_level = if args.quiet { LevelFilter::OFF } else { LevelFilter::ERROR };
    let filter = wanted.unwrap_or_else(|| Targets::new().with_default(default_level));

    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
}

async fn carry_out(cli: Cli, out: Output, stop: &watch::Sender<bool>) -> Result<Exit> {
    if let Command::Completions { shell } = cli.command {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "filestore", &mut script);
        Output::raw(&script)?;
        return Ok(Exit::Done);
    }
    if let Command::Key(KeyCommand::Generate) = cli.command {
        return key::generate(out);
    }
    if let Command::Purge(PurgeCommand::Receipt { verify: Some(file), public_key, keys, .. }) =
        &cli.command
    {
        let signer = receipt::Signer::of(public_key.as_deref(), keys.as_deref())?;
        return receipt::verify(file, &signer, out);
    }
    if let Command::Metadata(command) = cli.command {
        return metadata::run(command, cli.global.configuration(), out).await;
    }
    if let Command::Backup(command) = &cli.command
        && let Some(exit) = backup::without_store(command, &cli.global.address(), out).await?
    {
        return Ok(exit);
    }
    let opened = target::open(cli.global.address(), if_absent(&cli.command)).await?;
    let outcome = on_target(cli.command, &opened, out, stop).await;
    opened.target.close().await;
    outcome
}

/// Returns what to do about a data directory that does not exist.
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
            Some(dir) => recursive::run(&dir, args, opened, out).await,
            None => upload::run(args, target, out).await,
        },
        Command::Batch(args) => upload::batch(args, target, out).await,
        Command::Get(args) => get::run(args, target, out).await,
        Command::Variant(args) => get::variant(args, target, out).await,
        Command::Sheet(args) => get::sheet(args, target, out).await,
        Command::Info(args) => file::info(&args.id, target, out).await,
        Command::List(args) => file::list(args, target, out).await,
        Command::Thumbnail(args) => file::thumbnail(&args.id, target, out).await,
        Command::Ready(args) => file::ready(args, target, out).await,
        Command::Replace(args) => file::replace(args, target, out).await,
        Command::Edit(args) => file::edit(args, target, out).await,
        Command::Delete(args) => file::delete(args, target, out).await,
        Command::Restore(args) => file::restore(&args.id, target, out).await,
        Command::Sign(args) => sign::file(&args, target, out).await,
        Command::SignUpload(args) => sign::upload(args, target, out).await,
        Command::Signing(command) => sign::secrets(command, target, out).await,
        Command::Provider(ProviderCommand::List { all: false }) => {
            binding::providers(target, out).await
        }
        Command::Provider(ProviderCommand::List { all: true }) => {
            binding::all_providers(target, out).await
        }
        Command::Provider(ProviderCommand::Check { code }) => {
            binding::check_provider(&code, target, out).await
        }
        Command::Binding(command) => binding::run(command, target, out).await,
        Command::Key(command) => key::run(command, target, out).await,
        Command::Purge(PurgeCommand::Run { dry_run: false }) => {
            admin::purge(DryRun::No, target, out).await
        }
        Command::Purge(PurgeCommand::Run { dry_run: true }) => {
            admin::purge(DryRun::Yes, target, out).await
        }
        Command::Purge(PurgeCommand::Receipt { id, .. }) => {
            receipt::show(
                &id.expect("clap asks for it, and the other form was answered"),
                target,
                out,
            )
            .await
        }
        Command::Purge(PurgeCommand::ReceiptKeys { rotate }) => {
            receipt::keys(rotate, target, out).await
        }
        Command::Sync(SyncCommand::Run) => admin::sync(target, out).await,
        Command::Sync(SyncCommand::Enqueue { org }) => admin::sync_enqueue(org, target, out).await,
        Command::Sync(SyncCommand::Retry { org }) => admin::sync_retry(org, target, out).await,
        Command::Sync(SyncCommand::Status) => admin::sync_status(target, out).await,
        Command::Organization(command) => organization::run(command, target, out, stop).await,
        Command::Fsck(args) => fsck::run(args, target, out, stop).await,
        Command::Migrate(command) => migrate::run(command, target, out, stop).await,
        Command::Backup(command) => backup::run(command, target, out).await,
        Command::Variants(VariantsCommand::Status) => admin::variants_status(target, out).await,
        Command::Variants(VariantsCommand::Prune) => admin::variants_prune(target, out).await,
        Command::Usage { org } => admin::usage(&org, target, out).await,
        Command::Status => status::run(target, out).await,
        Command::Health => admin::health(target, out).await,
        Command::Metadata(_) | Command::Completions { .. } => {
            unreachable!("needs no target and was answered before")
        }
    }
}
