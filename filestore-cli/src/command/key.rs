//! `key`: API keys.

use std::time::Duration;

use filestore_core::Timestamp;
use filestore_core::api::{
    ALL_ORGANIZATIONS, CreateKey, ErrorCode, KeyReply, NewKeyReply, RotateKey,
};
use filestore_core::config_file::Seconds;
use filestore_core::keys::KeySecret;
use serde::Serialize;

use crate::args::KeyCommand;
use crate::failure::{Exit, Failure, Result};
use crate::output::{Align, Output, Table, plain, when};
use crate::store::Target;

/// Creates, lists, rotates or revokes keys.
pub(super) async fn run(command: KeyCommand, target: &dyn Target, out: Output) -> Result<Exit> {
    match command {
        KeyCommand::Create { org, scope, name, expires_in } => {
            let mut new = CreateKey::new(org, scope);
            new.name = name;
            new.expires_in_s = expires_in.map(Seconds::get);

            let made = target.create_key(&new).await.map_err(|e| e.doing("cannot create a key"))?;
            show_secret(&made, out)?;
        }

        KeyCommand::Rotate { id, overlap } => {
            let doing = format!("cannot rotate the key {}", plain(&id));

            let rotation = RotateKey::with_overlap_s(overlap.get());
            let made = target.rotate_key(&id, &rotation).await;
            let made = made.map_err(|e| cannot_rotate(e).doing(doing))?;
            show_rotated(&made, overlap, out)?;
        }

        KeyCommand::Revoke { id } => {
            let doing = format!("cannot revoke the key {}", plain(&id));
            let key = target.revoke_key(&id).await.map_err(|e| e.doing(doing))?;
            out.data(&key, |key| vec![key.id.as_str()], |key| table(std::slice::from_ref(key)))?;
        }

        KeyCommand::List => {
            let keys = target.keys().await.map_err(|e| e.doing("cannot list keys"))?;
            out.data(
                &keys,
                |all| all.iter().map(|key| key.id.as_str()).collect(),
                |all| table(all),
            )?;

            if keys.is_empty() {
                out.note("no keys: a server on loopback accepts every request");
            }
        }
        KeyCommand::Generate => return generate(out),
    }
    Ok(Exit::Done)
}

/// Adds the next step. The only conflict of a rotation is a revoked key.
fn cannot_rotate(failure: Failure) -> Failure {
    match failure.code() {
        Some(ErrorCode::Conflict) => failure.hint("create a new key: `filestore key create`"),
        _ => failure,
    }
}

/// A rotated key, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Rotated<'a> {
    #[serde(flatten)]
    made: &'a NewKeyReply,
    /// Time until which the old secret is valid. Null if it is not valid any longer.
    old_key_valid_until: Option<&'a str>,
}

/// Prints the new secret, and the time until which the old secret is valid.
fn show_rotated(made: &NewKeyReply, overlap: Seconds, out: Output) -> Result<()> {
    let until = old_key_end(made, overlap);
    out.text(&Rotated { made, old_key_valid_until: until.as_deref() }, &made.key)?;
    note_secret(made, out);
    out.note(match until {
        Some(at) => format!("the old secret stays valid until {} UTC", when(&at)),
        None => "the old secret no longer works".to_owned(),
    });
    Ok(())
}

/// Returns the end of the old secret, by the store's clock. `None` if the secret has ended.
fn old_key_end(made: &NewKeyReply, overlap: Seconds) -> Option<String> {
    let rotated_at = made.about.rotated_at.as_deref()?.parse::<Timestamp>().ok()?;
    let overlap = Some(overlap.get()).filter(|secs| *secs > 0)?;
    Some(rotated_at.plus(Duration::from_secs(overlap)).to_string())
}

/// Prints only the secret to stdout, for scripts. The rest is a note.
fn show_secret(made: &NewKeyReply, out: Output) -> Result<()> {
    out.text(made, &made.key)?;
    note_secret(made, out);
    Ok(())
}

fn note_secret(made: &NewKeyReply, out: Output) {
    let about = &made.about;
    out.note(format!(
        "key {} ({}): copy the secret now, because it is not shown again",
        about.id, about.name
    ));
}

/// A new secret that no store knows, and its hash.
#[derive(Debug, Serialize)]
struct Generated {
    key: String,
    hash: String,
}

/// `key generate`: prints a new secret and its hash.
pub(super) fn generate(out: Output) -> Result<Exit> {
    let secret = KeySecret::generate();
    let generated = Generated { key: secret.expose().to_owned(), hash: secret.digest().to_hex() };
    out.data(
        &generated,
        |pair| vec![pair.key.as_str(), pair.hash.as_str()],
        |pair| format!("key   {}\nhash  {}", pair.key, pair.hash),
    )?;
    Ok(Exit::Done)
}

fn table(keys: &[KeyReply]) -> String {
    if keys.is_empty() {
        return String::new();
    }

    let columns = ["ID", "NAME", "ORGS", "SCOPES", "STATE", "CREATED (UTC)", "LAST USED (UTC)"];
    let table = Table::new(columns.map(|name| (name, Align::Left)));
    let table = table.shortens(&["NAME", "ORGS", "SCOPES"]);
    let mut table = table.drops(&["CREATED (UTC)", "LAST USED (UTC)", "ORGS", "SCOPES"]);
    for key in keys {
        table.row([
            plain(&key.id),
            plain(&key.name),
            organizations(&key.organizations),
            plain(&key.scopes.join(" ")),
            state(key),
            when(&key.created_at),
            key.last_used_at.as_deref().map_or_else(|| "never".to_owned(), when),
        ]);
    }
    table.render()
}

/// Names a key's organizations.
pub(super) fn organizations(all: &[String]) -> String {
    match all {
        [one] if one == ALL_ORGANIZATIONS => "all".to_owned(),
        [one, two, three, more @ ..] if !more.is_empty() => {
            plain(&format!("{one} {two} {three} and {} more", more.len()))
        }
        few => plain(&few.join(" ")),
    }
}

fn state(key: &KeyReply) -> String {
    let state = match (&key.revoked_at, &key.expires_at) {
        (Some(at), _) => format!("revoked {}", when(at)),
        (None, Some(at)) => format!("until {}", when(at)),
        (None, None) => "valid".to_owned(),
    };
    match &key.old_valid_until {
        Some(at) => format!("{state}, old secret until {}", when(at)),
        None => state,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_organizations_are_counted() {
        let shown = |names: &[&str]| {
            organizations(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(shown(&["*"]), "all");
        assert_eq!(shown(&["7", "8", "9"]), "7 8 9");
        assert_eq!(shown(&["7", "8", "9", "10", "11"]), "7 8 9 and 2 more");
    }
}
