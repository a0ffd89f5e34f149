//! The target of a command, from the options or from the environment.
//!
//! This module reads the variables instead of clap, so that a variable never conflicts with an
//! option. An option overrides every variable.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use filestore_core::config::warn_of_others;

use super::GlobalArgs;
use crate::failure::{Failure, Result};
use crate::output::plain;
use crate::store::Address;

/// The server that commands use by default.
const DEFAULT_SERVER: &str = "http://127.0.0.1:8080";

/// Variables with the same meaning as the options of these names.
const URL: &str = "FILESTORE_URL";
const KEY: &str = "FILESTORE_KEY";
const KEY_FILE: &str = "FILESTORE_KEY_FILE";
const CA_CERT: &str = "FILESTORE_CA_CERT";
const DATA_DIR: &str = "FILESTORE_DATA_DIR";
const CONFIG: &str = "FILESTORE_CONFIG";

impl GlobalArgs {
    /// Returns the address of the store. Fails if the environment names two targets, or if the file
    /// with the key is unreadable.
    pub(crate) fn address(&self) -> Result<Address> {
        let url = variable(URL).and_then(|url| url.into_string().ok());
        if let Some(path) = self.directory() {
            if self.data_dir.is_none() && url.is_some() {
                let problem =
                    format!("{URL} and {DATA_DIR} are both set: a command has one target");
                return Err(Failure::failed(problem)
                    .hint("unset one of them, or choose with --server or --data-dir"));
            }
            return Ok(Address::Directory { path, config: self.configuration() });
        }

        Ok(Address::Server {
            url: self.server.clone().or(url).unwrap_or_else(|| DEFAULT_SERVER.to_owned()),
            key: self.api_key()?,
            ca_cert: self.ca_cert.clone().or_else(|| variable(CA_CERT).map(PathBuf::from)),
        })
    }

    /// Returns the data directory, if the command works on a directory.
    pub(super) fn directory(&self) -> Option<PathBuf> {
        match (&self.data_dir, &self.server) {
            (Some(path), _) => Some(path.clone()),
            (None, Some(_)) => None,
            (None, None) => variable(DATA_DIR).map(PathBuf::from),
        }
    }

    /// Returns the path of the server's configuration file, if the user names a file.
    pub(crate) fn configuration(&self) -> Option<PathBuf> {
        self.config.clone().or_else(|| variable(CONFIG).map(PathBuf::from))
    }

    /// Returns the API key: from an option, then from FILESTORE_KEY, then from FILESTORE_KEY_FILE.
    fn api_key(&self) -> Result<Option<String>> {
        if let Some(path) = &self.key_file {
            return read_key(path).map(Some);
        }
        let given =
            self.key.clone().or_else(|| variable(KEY).and_then(|key| key.into_string().ok()));
        if given.is_some() {
            return Ok(given.filter(|key| !key.is_empty()));
        }
        variable(KEY_FILE).map(|path| read_key(Path::new(&path))).transpose()
    }
}

/// Reads a key from a file with a single line.
fn read_key(path: &Path) -> Result<String> {
    let shown = plain(&path.display().to_string());
    let text = fs::read_to_string(path)
        .map_err(|e| Failure::io(format!("cannot read the API key in {shown}"), &e))?;
    warn_of_others("the API key", path);

    let key = text.trim();
    if key.is_empty() || key.contains(char::is_whitespace) {
        let problem = format!("the file {shown} must contain one API key and no other text");
        return Err(Failure::failed(problem).hint("`filestore key create` prints a key"));
    }
    Ok(key.to_owned())
}

/// Reads an environment variable. An empty variable counts as absent.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
