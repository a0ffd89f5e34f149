//! One run of a converter. The file is put into a scratch directory, the command runs in the sandbox, and the
//! picture is returned.
//!
//! # Crash safety
//! The directory belongs to the run and is removed with it. [`Converters::open`](super::Converters::open)
//! removes the directories of a killed process.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

pub(super) use filestore_sandbox::remove_tree;
use filestore_sandbox::{ErrorKind as Sandboxed, Killer, Limits, Sandbox, Scratch};

use crate::domain::config::{ConverterConfig, ConverterOutput, VariantConfig};
use crate::domain::error::{Error, ErrorKind, Result};
use crate::tasks;

/// The name of the file to convert in the scratch directory.
const INPUT: &str = "input";

/// Returns the program that starts the converters of `config`. Empty if there are none.
/// [`Unusable`](ErrorKind::Unusable) for converters without a launcher.
pub(super) fn launcher(config: &VariantConfig) -> Result<PathBuf> {
    match &config.launcher {
        Some(launcher) => Ok(launcher.clone()),
        None if config.converters.is_empty() => Ok(PathBuf::new()),
        None => {
            let message =
                "converters need a launcher: a program that calls filestore_core::variants::launch";
            Err(Error::new(ErrorKind::Unusable, message))
        }
    }
}

/// Describes the protections of the sandbox on this machine.
pub(super) fn walls(launcher: &Path) -> String {
    match Sandbox::new(launcher).walls() {
        Ok(walls) => walls.to_string(),
        Err(error) => Error::internal("asking for the walls of the sandbox", error).chain(),
    }
}

/// A converter with its sandbox.
pub(super) struct Job {
    sandbox: Sandbox,
    config: ConverterConfig,
}

/// Kills a run when no caller waits for it.
struct KillOnDrop(Killer);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        self.0.kill();
    }
}

impl Job {
    /// Prepares a run.
    pub(super) fn new(launcher: &Path, config: &ConverterConfig) -> Self {
        let sandbox = Sandbox::new(launcher).with_limits(limits(config));
        Self { sandbox: sandbox.with_readable(&config.readable), config: config.clone() }
    }

    /// Converts `source` in a scratch directory below `directory`. If the future is dropped, the run ends.
    pub(super) async fn run(self, directory: PathBuf, source: File) -> Result<File> {
        let killer = Killer::new();
        let _killed_at_the_end = KillOnDrop(killer.clone());
        tasks::blocking(move || self.convert(&directory, source, &killer))
            .await
            .map_err(|error| Error::internal("running a converter", error))?
    }

    fn convert(&self, directory: &Path, source: File, killer: &Killer) -> Result<File> {
        let (size, limit) =
            (source.metadata().map_err(not_begun)?.len(), self.config.max_input_bytes);
        if size > limit {
            let message = format!("the file is too large to be converted: {size} bytes");
            return Err(Error::new(ErrorKind::ConversionFailed, message).with_limit(limit));
        }

        let scratch = Scratch::new_in(directory).map_err(not_begun)?;
        let picture = self.convert_in(&scratch, source, killer);
        if let Err(error) = scratch.close() {
            tracing::warn!(%error, "cannot remove the directory of a conversion");
        }
        picture
    }

    fn convert_in(&self, scratch: &Scratch, mut source: File, killer: &Killer) -> Result<File> {
        source.seek(SeekFrom::Start(0)).map_err(not_begun)?;
        scratch.copy_in(INPUT, &mut source).map_err(not_begun)?;

        let ran = self.sandbox.run_with_killer(scratch, self.command(scratch), killer);
        ran.map_err(|error| self.refused(scratch, error, "beginning a conversion"))?;
        scratch
            .open_output(self.output(), self.config.max_output_bytes)
            .map_err(|error| self.refused(scratch, error, "opening a converted picture"))
    }

    /// Inserts the names of files into the command. No shell reads them.
    fn command(&self, scratch: &Scratch) -> Vec<String> {
        let names = [INPUT, self.output(), "output"];
        let paths = names.map(|name| scratch.path().join(name).display().to_string());
        let [input, output, stem] = paths;

        let arguments = self.config.command.iter().map(|argument| {
            let filled = argument.replace("{input}", &input);
            filled.replace("{output}", &output).replace("{stem}", &stem)
        });
        arguments.collect()
    }

    fn output(&self) -> &'static str {
        match self.config.output {
            ConverterOutput::Png => "output.png",
            ConverterOutput::Jpeg => "output.jpg",
        }
    }

    /// Returns this run's error, with the command's stderr as its source.
    fn refused(&self, scratch: &Scratch, error: filestore_sandbox::Error, doing: &str) -> Error {
        let message = match error.kind() {
            Sandboxed::TooSlow => "the conversion takes too long",
            Sandboxed::TooMuchOutput => "the conversion writes too much",
            Sandboxed::TooManyProcesses => "the conversion starts too many processes",
            Sandboxed::TooMuchMemory => "the conversion takes too much memory",
            Sandboxed::OverLimit => "the conversion takes too much time or writes too much",
            Sandboxed::Failed => "the converter could not read the file",
            Sandboxed::NoOutput => "the converter made no picture",
            Sandboxed::NotFound => {
                &format!("the converter is not installed: {}", self.config.program())
            }
            Sandboxed::NotIsolated => "the converter cannot be isolated here",
            Sandboxed::Io => return Error::io(doing, error.into()),
            _ => return Error::internal("starting the launcher of a converter", error),
        };
        let said = format!("{} said: {}", self.config.program(), scratch.stderr());
        Error::new(ErrorKind::ConversionFailed, message).with_source(said)
    }
}

fn limits(config: &ConverterConfig) -> Limits {
    let mut limits = Limits::default();
    limits.time = config.timeout;
    limits.cpu = config.cpu;
    limits.memory_bytes = config.memory_bytes;
    limits.file_bytes = config.max_output_bytes;
    limits.scratch_bytes = config.max_output_bytes.saturating_add(config.max_input_bytes);
    limits.open_files = config.open_files;
    limits
}

fn not_begun(error: io::Error) -> Error {
    Error::io("beginning a conversion", error)
}
