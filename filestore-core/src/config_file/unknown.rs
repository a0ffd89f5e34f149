//! Advice on an unknown key: the key that was probably meant, or the table that has the key.

use super::tables::TABLES;
use crate::domain::similar::nearest;

/// The start of the message that serde has for an unknown key. The key follows.
const UNKNOWN: &str = "unknown field `";

/// Maximum number of keys that an error lists.
const MAX_LISTED: usize = 12;

/// The tables that only the server reads, and their keys. A test of the server compares them.
const SERVER_TABLES: [(&str, &[&str]); 4] = [
    (
        "[http]",
        &[
            "first_byte_secs",
            "header_secs",
            "keep_alive_idle_secs",
            "write_idle_secs",
            "body_first_byte_secs",
            "body_idle_secs",
            "drain_secs",
            "drain_bytes",
            "stop_secs",
            "max_connections",
            "max_connections_per_address",
            "min_rate_bytes_per_sec",
            "min_rate_grace_secs",
            "buffer_bytes",
        ],
    ),
    ("[tls]", &["cert", "key"]),
    ("[cors]", &["allowed_origins", "allowed_headers", "max_age_secs"]),
    (
        "[rate_limits]",
        &["window_secs", "key_requests", "key_in_flight", "address_requests", "address_in_flight"],
    ),
];

/// Replaces the line about an unknown key in a TOML error with advice. Returns any other error
/// unchanged.
///
/// ```
/// let error = "unknown field `max_file_size`, expected one of `listen`, `limits`";
/// let advice = filestore_core::config_file::explain_unknown_key(error);
/// assert_eq!(advice, "unknown key `max_file_size`: it belongs to [limits]");
/// ```
pub fn explain_unknown_key(error: &str) -> String {
    let Some(at) = error.find(UNKNOWN) else { return error.to_owned() };
    let line = error[at..].lines().next().unwrap_or_default();
    let Some((key, expected)) = line[UNKNOWN.len()..].split_once('`') else {
        return error.to_owned();
    };

    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    format!("{}unknown key `{key}`{}", &error[..at], advice(key, &known))
}

/// Advises on a key that is not one of the `known` keys of its table.
fn advice(key: &str, known: &[&str]) -> String {
    let homes: Vec<_> = tables().filter(|(_, keys)| keys.contains(&key)).map(|(t, _)| t).collect();
    if !homes.is_empty() {
        return format!(": it belongs to {}", homes.join(" or "));
    }
    if let Some(near) = nearest(key, known.iter().copied()) {
        return format!(": did you mean `{near}`?");
    }

    let everywhere = tables().flat_map(|(_, keys)| keys.iter().copied());
    if let Some(near) = nearest(key, everywhere) {
        let home = tables().find(|(_, keys)| keys.contains(&near)).map_or("", |(table, _)| table);
        return format!(": did you mean `{near}` of {home}?");
    }
    if known.is_empty() || known.len() > MAX_LISTED {
        return ": the README of filestore-server lists all keys".to_owned();
    }
    format!(": allowed here: {}", known.join(", "))
}

fn tables() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    TABLES.iter().chain(&SERVER_TABLES).copied()
}

#[cfg(test)]
mod tests {
    use crate::domain::config::StoreConfig;

    fn said(text: &str) -> String {
        StoreConfig::from_toml(text, |_| None).unwrap_err().to_string()
    }

    #[test]
    fn a_misspelled_key_leads_to_the_key_that_was_meant() {
        for (text, advice) in [
            ("lisen = \"x\"", "unknown key `lisen`: did you mean `listen`?"),
            ("auht = \"x\"", "unknown key `auht`: did you mean `auth`?"),
            ("[limits]\nmax_file_siz = 1", "did you mean `max_file_size`?"),
            ("[limit]\n", "did you mean `limits`?"),
            ("max_file_sise = 1", "did you mean `max_file_size` of [limits]?"),
            ("max_conections = 1", "did you mean `max_connections` of [http]?"),
            ("[local]\nbakend = \"x\"", "did you mean `backend`?"),
            ("[signing]\ncolour = 1", "allowed here: window_secs, secrets"),
            ("colour = 1", "the README of filestore-server lists all keys"),
        ] {
            let said = said(text);
            assert!(said.contains(advice), "{text}: {said}");
            assert!(!said.contains("expected"), "{text}: {said}");
        }
    }

    #[test]
    fn a_key_outside_its_table_leads_to_the_table() {
        for (text, advice) in [
            ("max_file_size = 5", "`max_file_size`: it belongs to [limits]"),
            ("header_secs = 5", "it belongs to [http]"),
            ("[limits]\ntemp_ttl_secs = 5", "it belongs to [lifetimes]"),
            ("[limits]\nquota_bytes = 5", "it belongs to the top of the file, before all tables"),
            (
                "timeout_secs = 5",
                "it belongs to [webhooks] or [[variants.converters]] or [[providers]]",
            ),
        ] {
            let said = said(text);
            assert!(said.contains(advice), "{text}: {said}");
            assert!(said.contains("line "), "{text}: {said}");
        }
    }
}
