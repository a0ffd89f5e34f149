//! Paths and programs that a configuration names and this machine does not have. A start goes on without
//! most of them, and the work that needs them fails later: so they are warnings.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use filestore_core::config::{BackupPlace, OptionValue};

use super::Config;

/// The folders in which converters find programs (`filestore_sandbox::Sandbox::run`).
const PROGRAM_FOLDERS: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// A path or program that does not exist, or is something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Missing {
    /// The configuration's key, with its table.
    pub(crate) key: &'static str,
    /// The path, or the program's name.
    pub(crate) path: PathBuf,
    /// The fault, and the remedy.
    pub(crate) problem: &'static str,
}

impl Config {
    /// Lists the paths and programs that do not exist. Blocks for a moment.
    pub(crate) fn missing(&self) -> Vec<Missing> {
        let mut missing = Missed::default();
        for destination in &self.store.backup_destinations {
            if let BackupPlace::Directory(path) = &destination.place {
                let problem = "no such directory: create it or mount its disk, or snapshots fail";
                missing.unless(path.is_dir(), "backup.destinations.path", path, problem);
            }
        }
        for provider in self.store.providers.iter().filter(|provider| provider.scheme == "fs") {
            if let Some(root) = provider.options.get("root").map(OptionValue::to_text) {
                let problem = "no such directory: mount its disk, or a start creates it";
                missing.unless(Path::new(&root).is_dir(), "providers.options.root", root, problem);
            }
        }
        if let Some(folder) = self.audit_log.as_deref().and_then(Path::parent) {
            let is_there = folder.as_os_str().is_empty() || folder.is_dir();
            let problem = "no such directory: create it, or the server does not start";
            missing.unless(is_there, "audit_log", folder, problem);
        }
        self.missing_programs(&mut missing);
        missing.0
    }

    fn missing_programs(&self, missing: &mut Missed) {
        let variants = &self.store.variants;
        for converter in &variants.converters {
            let program = converter.program();
            let problem = "no such program: install it, or its previews fail";
            missing.unless(is_program(program), "variants.converters.command", program, problem);
            for path in &converter.readable {
                let problem = "no such file or directory: previews that need it fail";
                missing.unless(path.exists(), "variants.converters.readable", path, problem);
            }
        }
        let launcher = variants.launcher.as_ref().filter(|_| !variants.converters.is_empty());
        if let Some(launcher) = launcher {
            let problem = "no such program: all previews fail";
            missing.unless(is_executable(launcher), "variants.launcher", launcher, problem);
        }
    }
}

#[derive(Default)]
struct Missed(Vec<Missing>);

impl Missed {
    fn unless(
        &mut self,
        is_there: bool,
        key: &'static str,
        path: impl AsRef<Path>,
        problem: &'static str,
    ) {
        if !is_there {
            self.0.push(Missing { key, path: path.as_ref().to_owned(), problem });
        }
    }
}

/// Tests whether the sandbox finds a program. A relative path begins in the folder of the run, which does not
/// exist yet.
fn is_program(program: &str) -> bool {
    if program.contains('/') {
        return !program.starts_with('/') || is_executable(Path::new(program));
    }
    PROGRAM_FOLDERS.iter().any(|folder| is_executable(&Path::new(folder).join(program)))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Vec<&'static str> {
        let config = Config::from_toml(text).unwrap();
        config.missing().into_iter().map(|missing| missing.key).collect()
    }

    #[test]
    fn paths_and_programs_that_do_not_exist_are_named_by_their_keys() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).display().to_string();
        let text = |place: &str, program: &str| {
            format!(
                "audit_log = \"{place}/audit.jsonl\"\n\
                 [[backup.destinations]]\nname = \"a\"\npath = \"{place}\"\n\
                 [[providers]]\ncode = \"disk\"\nscheme = \"fs\"\noptions.root = \"{place}\"\n\
                 [variants]\nlauncher = \"{program}\"\n\
                 [[variants.converters]]\ntypes = [\"application/pdf\"]\ncommand = [\"{program}\"]\n\
                 readable = [\"{place}\"]\n"
            )
        };
        let all = [
            "backup.destinations.path",
            "providers.options.root",
            "audit_log",
            "variants.converters.command",
            "variants.converters.readable",
            "variants.launcher",
        ];
        assert_eq!(keys(&text(&at("absent"), &at("absent"))), all);
        assert_eq!(keys(&text(&at("."), "/bin/sh")), [""; 0]);
        assert_eq!(keys("audit_log = \"audit.jsonl\""), [""; 0], "in the working directory");
    }

    #[test]
    fn a_program_without_a_path_is_looked_for_where_the_sandbox_looks() {
        assert!(is_program("sh") && !is_program("no-such-program-of-filestore"));
        assert!(is_program("./made-by-the-run"));
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("data");
        std::fs::write(&file, "").unwrap();
        assert!(!is_program(file.to_str().unwrap()), "it cannot be executed");
    }
}
