//! The tables `[[providers]]`, with environment variables.
//!
//! `[providers.options]` goes to OpenDAL unchanged, so options of OpenDAL need no code here.
//! `storage/cloud/opening/open.rs` checks their names, and handles options with special rules. A
//! key next to `options` (for example `retries`) is a field of `ProviderTable`.

use std::fmt::Display;
use std::time::Duration;

use super::ConfigFileError;
use super::tables::{OptionInFile, ProviderTable};
use super::units::Seconds;
use crate::domain::provider::{OptionValue, ProviderCode, ProviderConfig};

type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Converts the tables, in the file's order. The error `Provider` names the invalid table.
pub(super) fn into_configs(
    tables: Vec<ProviderTable>,
    env: Env<'_>,
) -> Result<Vec<ProviderConfig>, ConfigFileError> {
    tables.into_iter().enumerate().map(|(at, table)| into_config(at + 1, table, env)).collect()
}

fn into_config(
    at: usize,
    table: ProviderTable,
    env: Env<'_>,
) -> Result<ProviderConfig, ConfigFileError> {
    let code = table.code.ok_or_else(|| wrong(&at, "the key code is missing"))?;
    let code: ProviderCode = code.parse().map_err(|error| wrong(&at, format!("{error}")))?;
    let scheme = table.scheme.ok_or_else(|| wrong(&code, "the key scheme is missing"))?;

    let mut config = ProviderConfig::new(code.clone(), scheme);
    config.timeout =
        seconds("timeout_secs", table.timeout_secs, config.timeout).map_err(|p| wrong(&code, p))?;
    config.io_timeout = seconds("io_timeout_secs", table.io_timeout_secs, config.io_timeout)
        .map_err(|p| wrong(&code, p))?;
    config.name = table.name.unwrap_or(config.name);
    config.is_active = table.active.unwrap_or(config.is_active);
    config.retries = table.retries.map_or(config.retries, usize::from);
    config.concurrency = table.concurrency.map_or(config.concurrency, usize::from);
    config.min_read_rate =
        table.min_read_kib_per_sec.map_or(config.min_read_rate, |kib| u64::from(kib) << 10);
    if config.concurrency == 0 {
        return Err(wrong(&code, "concurrency must be at least 1"));
    }

    for (name, value) in table.options.unwrap_or_default() {
        let value = option_value(value, env)
            .map_err(|problem| wrong(&code, format!("the option {name} {problem}")))?;
        config.options.insert(name, value);
    }
    Ok(config)
}

fn seconds(key: &str, secs: Option<Seconds>, default: Duration) -> Result<Duration, String> {
    match secs.map(Seconds::get) {
        None => Ok(default),
        Some(0) => Err(format!("{key} must be at least 1")),
        Some(secs) => Ok(Duration::from_secs(secs)),
    }
}

/// Inserts environment variables into an option. `Err` continues "the option ... ".
fn option_value(value: OptionInFile, env: Env<'_>) -> Result<OptionValue, String> {
    Ok(match value {
        OptionInFile::Boolean(answer) => OptionValue::Boolean(answer),
        OptionInFile::Integer(number) => OptionValue::Integer(number),
        OptionInFile::Text(text) => OptionValue::Text(filled_in(&text, env)?),
    })
}

fn wrong(provider: &impl Display, problem: impl Into<String>) -> ConfigFileError {
    ConfigFileError::Provider { provider: provider.to_string(), problem: problem.into() }
}

/// Replaces each `${NAME}` in `text` with the value of the variable, and `$${` with `${`. `Err`
/// continues "the option ... " or "the key ... ".
pub(super) fn filled_in(text: &str, env: Env<'_>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, variable) = (&rest[..at], &rest[at + 2..]);
        if let Some(before) = before.strip_suffix('$') {
            filled.extend([before, "${"]);
            rest = variable;
            continue;
        }

        let Some((name, after)) = variable.split_once('}').filter(|(name, _)| is_name(name)) else {
            return Err(
                "has ${ without the name of an environment variable, write $${ for these characters"
                    .to_owned(),
            );
        };

        let value = env(name)
            .ok_or_else(|| format!("names the environment variable {name}, which is not set"))?;
        filled.extend([before, &value]);
        rest = after;
    }
    Ok(filled + rest)
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}
