//! The `filestore-server` binary: reads arguments, runs the server, handles signals.

mod cli;
mod visible;

use std::process::ExitCode;

use clap::Parser;
use rustix::fs::Mode;
use rustix::process::umask;

fn main() -> ExitCode {
    if let Some(code) = filestore_core::variants::launch(std::env::args_os()) {
        return code;
    }
    let args = cli::Args::parse();
    // All that the server makes is for its account alone: also what a library makes for a provider.
    umask(Mode::RWXG | Mode::RWXO);
    cli::init_logging(args.log_format);
    let runtime =
        tokio::runtime::Runtime::new().expect("a runtime needs only threads and a poller");
    let code = runtime.block_on(cli::run(args));
    // Blocking work cannot be cancelled, and a provider's may never end.
    runtime.shutdown_timeout(cli::LEFT_BEHIND);
    code
}
