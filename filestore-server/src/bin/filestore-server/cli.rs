//! Arguments, environment, signals and exit codes.

use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, ValueEnum};
use filestore_core::config::warn_of_others;
use filestore_core::keys::KeyDigest;
use filestore_server::{Config, ConfigError, Server, StartError, listen};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::visible::VisibleLines;

/// The exit code for an unusable configuration or unusable arguments.
const EXIT_USAGE: u8 = 2;

/// The exit code if the process must restart (`EX_SOFTWARE` of sysexits.h). A supervisor restarts it.
const EXIT_POISONED: i32 = 70;

/// The maximum duration of a stop, in addition to the time for requests (`stop_secs`). This time is for
/// workers, the database and hanging threads.
const STOP_EXTRA: Duration = Duration::from_secs(3);

/// The maximum wait for blocking work when the runtime ends.
pub(crate) const LEFT_BEHIND: Duration = Duration::from_millis(500);

/// Serve files over HTTP: uploads, thumbnails, signed URLs, undoable deletes
///
/// Without arguments, the server listens on 127.0.0.1:8080 and stores everything below
/// ./filestore-data: the records in SQLite, the files, and the cached thumbnails.
///
/// A flag overrides its environment variable, the variable overrides the file, and the file
/// overrides the default.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub(crate) struct Args {
    /// Address [default: 127.0.0.1:8080]. Port 0 means any free port
    #[arg(long, env = "FILESTORE_LISTEN", value_name = "IP:PORT")]
    listen: Option<SocketAddr>,

    /// Data directory [default: ./filestore-data]. Created if missing, for one process at a time
    #[arg(long, env = "FILESTORE_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Configuration file (TOML)
    #[arg(long, env = "FILESTORE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,

    /// URL at which a proxy publishes the server. Can have a path
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,

    /// SHA-256 of the first key, if you cannot run a command to create the key
    #[arg(long, env = "FILESTORE_FIRST_KEY_HASH", value_name = "HEX", hide = true)]
    first_key_hash: Option<KeyDigest>,

    /// Accept requests from other machines without keys
    #[arg(long)]
    insecure_no_auth: bool,

    /// Check flags and configuration, and exit with the code of a start
    #[arg(long)]
    check_config: bool,

    /// Print the configuration with all defaults as TOML, with *** for secrets
    #[arg(long, conflicts_with = "check_config")]
    print_config: bool,

    /// Log format. Logs go to stderr. Filter with FILESTORE_LOG or RUST_LOG, for example debug
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
}

/// Formats of log lines.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum LogFormat {
    /// One line of text for each event
    Text,
    /// One JSON object for each event
    Json,
}

/// Sends log lines to stderr. stdout contains only the server's address.
pub(crate) fn init_logging(format: LogFormat) {
    let wanted = ["FILESTORE_LOG", "RUST_LOG"].iter().find_map(|name| std::env::var(name).ok());
    let wanted = wanted.and_then(|text| text.parse::<Targets>().ok());
    let filter = wanted.unwrap_or_else(|| Targets::new().with_default(LevelFilter::INFO));

    let lines = tracing_subscriber::fmt::layer()
        .with_writer(|| VisibleLines(std::io::stderr()))
        .with_ansi(std::io::stderr().is_terminal());
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    tracing_subscriber::registry().with(lines.with_filter(filter)).init();
}

impl Args {
    /// Merges the configuration. Flags and environment have priority over the file, and the file over the
    /// defaults.
    fn to_config(&self) -> Result<Config, StartError> {
        if let Some(file) = &self.config {
            warn_of_others("the configuration", file);
        }
        let mut config =
            self.config.as_ref().map_or_else(|| Ok(Config::default()), Config::load)?;
        config.listen = self.listen.unwrap_or(config.listen);
        if let Some(data_dir) = &self.data_dir {
            config.data_dir.clone_from(data_dir);
        }
        config.public_url = self.public_url.clone().or(config.public_url);
        config.insecure_no_auth |= self.insecure_no_auth;
        config.first_key_hash = self.first_key_hash.or(config.first_key_hash);
        let launcher = &mut config.store.variants.launcher;
        *launcher = launcher.take().or_else(|| std::env::current_exe().ok());
        Ok(config)
    }

    /// Describes an error, with the configuration file in front if the fault is in the file.
    fn in_file(&self, error: &StartError) -> String {
        let is_in_file = match error {
            // They name the file themselves.
            StartError::Config(ConfigError::InFile { .. } | ConfigError::Store(_)) => false,
            StartError::Exposed { .. } => self.listen.is_none(),
            StartError::PublicUrl(_) | StartError::Published { .. } => self.public_url.is_none(),
            _ => error.is_usage(),
        };
        match &self.config {
            Some(file) if is_in_file => format!("{}: {error}", file.display()),
            _ => error.to_string(),
        }
    }
}

/// Runs the server until a signal or a fault ends it.
pub(crate) async fn run(args: Args) -> ExitCode {
    match try_run(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("filestore-server: {}", args.in_file(&error));
            if error.is_usage() { ExitCode::from(EXIT_USAGE) } else { ExitCode::FAILURE }
        }
    }
}

async fn try_run(args: &Args) -> Result<(), StartError> {
    if args.print_config {
        let _ = write!(std::io::stdout(), "{}", args.to_config()?.to_toml()?);
        return Ok(());
    }
    if args.check_config {
        Server::check_config(&args.to_config()?)?;
        let _ = writeln!(std::io::stdout(), "the configuration can be used");
        return Ok(());
    }

    // Before the start, so that a signal during a long recovery is not lost.
    let Signals { stop: mut signals, mut hangup } = Signals::new();
    survive_file_size_limit();
    let config = args.to_config()?;
    listen::raise_descriptor_limit();
    let data_dir = config.data_dir.clone();
    let stop_limit = config.http.grace.saturating_add(STOP_EXTRA);
    let mut server = Server::start(config).await?;
    tell_of_start(&server, args.config.as_deref(), &data_dir);

    // A closed stdout is no reason not to serve.
    let _ = writeln!(
        std::io::stdout(),
        "filestore-server listening on {} (data in {})",
        server.url(),
        data_dir.display()
    );

    let store = server.store().clone();
    let name = loop {
        tokio::select! {
            name = signals.next() => break name,
            _ = hangup.recv() => reload(&mut server, args).await,
            fault = store.admin().poisoned() => exit_poisoned(&fault),
        }
    };
    tracing::info!("{name}: stopping when running requests are done");

    end_after(stop_limit + STOP_EXTRA / 2);
    tokio::select! {
        () = server.stop() => {}
        name = signals.next() => tracing::warn!("{name} again: stopping at once"),
        () = tokio::time::sleep(stop_limit) => {
            tracing::warn!("a task hangs: stopping without that task. Acknowledged changes are durable");
        }
    }
    Ok(())
}

/// Logs what runs, with which configuration, on which database.
fn tell_of_start(server: &Server, config: Option<&Path>, data_dir: &Path) {
    let config = config.map_or_else(|| "none".into(), Path::to_string_lossy);
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        %config,
        schema = %server.store().admin().schema(),
        listen = %server.url(),
        data_dir = %data_dir.display(),
        "the server started"
    );
}

/// Reads the configuration again and applies it. An invalid configuration changes nothing.
async fn reload(server: &mut Server, args: &Args) {
    let reloaded = match args.to_config() {
        Ok(config) => server.reload(config).await,
        Err(error) => Err(error),
    };
    match reloaded {
        Ok(()) => tracing::info!("SIGHUP: the configuration was read again"),
        Err(error) => {
            let error = args.in_file(&error);
            tracing::error!("SIGHUP: the configuration stays as it was: {error}");
        }
    }
}

/// Ends the process after `limit`, even if every thread of the runtime hangs. A regular end is faster.
#[expect(clippy::disallowed_methods, reason = "no other thread may be able to run")]
fn end_after(limit: Duration) {
    // Without the thread a stop is as before.
    let _ = std::thread::Builder::new().name("stop".to_owned()).spawn(move || {
        std::thread::sleep(limit);
        tracing::error!(
            "the stop itself hangs: ending the process. Acknowledged changes are durable"
        );
        std::process::exit(0);
    });
}

/// Makes a write beyond the file size limit (`ulimit -f`) fail like a write on a full disk. Without a
/// handler, the signal would end the process.
fn survive_file_size_limit() {
    let file_size = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
    if let Err(error) = signal(file_size) {
        tracing::warn!(%error, "an upload beyond the limit of file sizes would end the process");
    }
}

/// Ends the process at once. Acknowledged work is durable, and the next start discards the rest.
#[expect(clippy::disallowed_methods, reason = "nothing of this process may run on")]
fn exit_poisoned(fault: &str) -> ! {
    tracing::error!(
        fault,
        "the database must be opened again: ending the process. Start the server again"
    );
    std::process::exit(EXIT_POISONED)
}

/// The signals that the server handles.
struct Signals {
    stop: StopSignals,
    hangup: Signal,
}

/// The signals that stop the server.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Self {
        let stop = StopSignals {
            terminate: caught(SignalKind::terminate()),
            interrupt: caught(SignalKind::interrupt()),
        };
        Self { stop, hangup: caught(SignalKind::hangup()) }
    }
}

impl StopSignals {
    /// Waits for the next signal and returns its name.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

fn caught(kind: SignalKind) -> Signal {
    signal(kind).expect("SIGTERM, SIGINT and SIGHUP can be caught")
}
