//! `key`: the keys that callers of a server show.

use filestore_core::api::{ALL_ORGANIZATIONS, CreateKey, KeyReply, NewKeyReply, RotateKey};
use filestore_core::keys::KeySecret;
use serde::Serialize;

use crate::args::KeyCommand;
use crate::failure::{Exit, Result};
use crate::output::{Align, Output, Table, plain, when};
use crate::target::Target;

/// Makes, lists, rotates or revokes keys.
pub(super) async fn run(command: KeyCommand, target: &dyn Target, out: Output) -> Result<Exit> {
    match command {
        KeyCommand::Create { org, scope, name, expires_in } => {
            let mut new = CreateKey::new(org, scope);
            new.name = name;
            new.expires_in_s = expires_in;
            let made = target.create_key(&new).await.map_err(|e| e.doing("cannot make a key"))?;
            show_text(&made, out)?;
        }
        KeyCommand::Rotate { id, overlap } => {
            let doing = format!("cannot rotate the key {}", plain(&id));
            let rotation = RotateKey::with_overlap_s(overlap);
            let made = target.rotate_key(&id, &rotation).await.map_err(|e| e.doing(doing))?;
            show_text(&made, out)?;
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
                out.note("no keys: a server on loopback asks nobody for one");
            }
        }
        KeyCommand::Generate => return generate(out),
    }
    Ok(Exit::Done)
}

/// Prints the text alone, so that a script can take it, and says the rest beside it.
fn show_text(made: &NewKeyReply, out: Output) -> Result<()> {
    out.text(made, &made.key)?;
    let about = &made.about;
    out.note(format!("key {} ({}); it is not shown again", about.id, about.name));
    Ok(())
}

/// A text that no store knows, and its hash.
#[derive(Debug, Serialize)]
struct Generated {
    key: String,
    hash: String,
}

/// `key generate`: prints a new text and its hash.
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

    let columns = ["ID", "NAME", "ORGS", "SCOPES", "STATE", "MADE (UTC)", "LAST USED (UTC)"];
    let mut table = Table::new(columns.map(|name| (name, Align::Left)));
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

fn organizations(all: &[String]) -> String {
    match all {
        [one] if one == ALL_ORGANIZATIONS => "all".to_owned(),
        [one, two, three, more @ ..] if !more.is_empty() => {
            plain(&format!("{one} {two} {three} and {} more", more.len()))
        }
        few => plain(&few.join(" ")),
    }
}

fn state(key: &KeyReply) -> String {
    match (&key.revoked_at, &key.expires_at) {
        (Some(at), _) => format!("revoked {}", when(at)),
        (None, Some(at)) => format!("until {}", when(at)),
        (None, None) => "good".to_owned(),
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
