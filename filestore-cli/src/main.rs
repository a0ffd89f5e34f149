//! `filestore`: the same commands for a running server and for a data directory.

mod args;
mod failure;
mod output;
mod store;
mod command;

use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    if let Some(code) = filestore_core::variants::launch(std::env::args_os()) {
        return code;
    }
    let cli = match args::Cli::parse_checked() {
        Ok(cli) => cli,
        Err(error) => return args::report_usage(&error),
    };
    command::start_log(&cli.global);

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("the operating system can start threads");

    let code = runtime.block_on(command::run(cli));
    // Does not wait for a read of stdin, which cannot be cancelled.
    runtime.shutdown_timeout(Duration::from_millis(100));
    code
}
