//! `filestore`: one command set over two targets, a running server or a data directory.

mod args;
mod failure;
mod output;
mod target;
mod command;

use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    if let Some(code) = filestore_core::variants::launch(std::env::args_os()) {
        return code;
    }
    let cli = args::Cli::parse_checked();
    command::start_log(&cli.global);

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("the operating system gives a process its threads");

    let code = runtime.block_on(command::run(cli));
    // A read of a terminal's stdin cannot be cancelled: do not wait for it.
    runtime.shutdown_timeout(Duration::from_millis(100));
    code
}
