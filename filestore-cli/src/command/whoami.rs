//! `whoami`.

use std::fmt::Write as _;

use filestore_core::api::{AccessMode, MeKey, MeLimits, MeReply};

use super::key::organizations;
use crate::failure::{Exit, Result};
use crate::output::{Output, age, counted, plain, size, when};
use crate::store::Target;

/// `whoami`: shows the caller's key, and the limits of the target.
pub(super) async fn run(target: &dyn Target, out: Output) -> Result<Exit> {
    let me = target.me().await.map_err(|e| e.doing("cannot show the key"))?;
    out.data(&me, |me| me.key.iter().map(|key| key.id.as_str()).collect(), text)?;
    Ok(Exit::Done)
}

fn text(me: &MeReply) -> String {
    let mut text = String::new();
    let mut line = |label: &str, value: String| _ = writeln!(text, "{label:<13} {value}");

    match &me.key {
        Some(key) => key_lines(key, &mut line),
        None if me.mode == AccessMode::Open => line("key", "none, callers need no key".to_owned()),
        None => line("key", "none, you have all rights".to_owned()),
    }
    line("store", format!("{}, version {}", plain(&me.store.id), plain(&me.store.version)));
    limit_lines(&me.limits, &mut line);

    let types = &me.features.converted_types;
    let types = if types.is_empty() { "images".to_owned() } else { plain(&types.join(", ")) };
    let animated = if me.features.animated { ", animated too" } else { "" };
    line("variants of", format!("{types}{animated}"));
    text
}

fn key_lines(key: &MeKey, line: &mut impl FnMut(&str, String)) {
    line("key", format!("{} ({})", plain(&key.id), plain(&key.name)));
    line("organizations", organizations(&key.organizations));
    line("scopes", plain(&key.scopes.join(" ")));
    let expires = key.expires_at.as_deref();
    line("expires", expires.map_or_else(|| "never".to_owned(), |at| format!("{} UTC", when(at))));
}

fn limit_lines(limits: &MeLimits, line: &mut impl FnMut(&str, String)) {
    line("file", format!("up to {}", size(limits.max_file_size)));
    let items = counted(limits.max_batch_items, "file");
    line("batch", format!("up to {items}, {}", size(limits.max_batch_size)));
    line("temporary", format!("kept for {}", age(limits.temp_ttl_secs)));
    line("deleted", format!("can be restored for {}", age(limits.purge_grace_secs)));
}
