//! Runs a command in the sandbox: `run INPUT OUTPUT PROGRAM ARGUMENT...`.
//!
//! The command reads the file `input` and writes the file `output`. For example:
//! `cargo run --example run -- page.txt PAGE.TXT sh -c 'tr a-z A-Z <input >output'`.

use std::env;
use std::error::Error;
use std::fs::File;
use std::io;
use std::process::ExitCode;

use filestore_sandbox::{Sandbox, Scratch, launch};

/// The most bytes of an output.
const MAX_BYTES: u64 = 100_000_000;

fn main() -> ExitCode {
    // The sandbox starts this program again, as its launcher.
    if let Some(code) = launch(env::args_os()) {
        return code;
    }

    let arguments: Vec<String> = env::args().skip(1).collect();
    let [input, output, command @ ..] = &arguments[..] else {
        eprintln!("usage: run INPUT OUTPUT PROGRAM ARGUMENT...");
        return ExitCode::from(2);
    };
    match convert(input, output, command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn convert(input: &str, output: &str, command: &[String]) -> Result<(), Box<dyn Error>> {
    let sandbox = Sandbox::new(env::current_exe()?);
    eprintln!("{}", sandbox.walls()?);

    let scratch = Scratch::new_in(env::temp_dir())?;
    scratch.copy_in("input", &mut File::open(input)?)?;
    if let Err(error) = sandbox.run(&scratch, command) {
        return Err(format!("{error}: {}", scratch.stderr()).into());
    }

    let mut made = scratch.open_output("output", MAX_BYTES)?;
    io::copy(&mut made, &mut File::create(output)?)?;
    scratch.close()?;
    Ok(())
}
