//! The `filestore-server` binary: reads arguments, runs the server, handles signals.

mod cli;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = cli::Args::parse();
    cli::init_logging(args.log_format);
    let runtime =
        tokio::runtime::Runtime::new().expect("a runtime needs only threads and a poller");
    runtime.block_on(cli::run(args))
}
