//! `sign`, `sign-upload`, `signing`: URLs that work without a key.

use filestore_core::api::{SignRequest, SignUploadRequest, SignedUrlReply, SigningSecretReply};
use filestore_core::config_file::{ByteCount, Seconds};

use crate::args::{SignArgs, SignUploadArgs, SigningCommand};
use crate::failure::{Exit, Result};
use crate::output::{Align, Output, Table, plain, when};
use crate::store::Target;

/// `sign`: prints a URL to read a file.
pub(super) async fn file(args: &SignArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    let mut request = SignRequest::content();
    request.size = args.size;
    request.fit = args.fit;
    request.animated = args.animated.then_some(true);
    request.disposition = args.disposition;
    if args.private {
        request = request.private();
    }
    if args.no_redirect {
        request = request.without_redirect();
    }
    request.expires_in_s = args.expires_in.map(Seconds::get);

    let doing = format!("cannot sign a URL for {}", args.id);
    let signed = target.sign(&args.id, &request).await.map_err(|e| e.doing(doing))?;
    show(&signed, out)
}

/// `sign-upload`: prints a URL to upload one file.
pub(super) async fn upload(args: SignUploadArgs, target: &dyn Target, out: Output) -> Result<Exit> {
    let mut request = SignUploadRequest::new(args.place.org, args.place.sub);
    request.max_size = args.max_size.map(ByteCount::get);
    request.mime_type = args.mime;
    request.upload_temp = args.temp.then_some(true);
    request.resumable = args.resumable.then_some(true);
    request.count = args.count;
    request.expires_in_s = args.expires_in.map(Seconds::get);

    let signed =
        target.sign_upload(&request).await.map_err(|e| e.doing("cannot sign an upload"))?;
    show(&signed, out)
}

fn show(signed: &SignedUrlReply, out: Output) -> Result<Exit> {
    if signed.urls.is_empty() {
        out.text(signed, &signed.url)?;
    } else {
        out.data(
            signed,
            |signed| signed.urls.iter().map(String::as_str).collect(),
            |signed| signed.urls.iter().map(|url| plain(url)).collect::<Vec<_>>().join("\n"),
        )?;
    }
    out.note(format!("valid until {} UTC", when(&signed.expires_at)));
    Ok(Exit::Done)
}

/// `signing`: lists, rotates or revokes secrets, and shows the current list.
pub(super) async fn secrets(
    command: SigningCommand,
    target: &dyn Target,
    out: Output,
) -> Result<Exit> {
    let (outcome, doing) = match command {
        SigningCommand::List => (target.signing_secrets().await, "cannot list secrets".to_owned()),
        SigningCommand::Rotate => {
            (target.signing_rotate().await, "cannot rotate the secret".to_owned())
        }
        SigningCommand::Revoke { kid } => {
            (target.signing_revoke(&kid).await, format!("cannot revoke {kid}"))
        }
    };

    let secrets = outcome.map_err(|e| e.doing(doing))?;
    out.data(&secrets, |all| all.iter().map(|one| one.kid.as_str()).collect(), |all| table(all))?;
    if secrets.is_empty() {
        out.note("no secrets: filestore creates a secret with the first URL");
    }
    Ok(Exit::Done)
}

fn table(secrets: &[SigningSecretReply]) -> String {
    if secrets.is_empty() {
        return String::new();
    }

    let columns = ["KID", "FROM", "USE", "CREATED (UTC)", "VALID UNTIL (UTC)"];
    let table = Table::new(columns.map(|name| (name, Align::Left)));
    let mut table = table.drops(&["CREATED (UTC)", "FROM"]);
    for secret in secrets {
        let origin = if secret.configured { "configuration" } else { "data directory" };
        let duty = if secret.signs { "signs" } else { "verifies" };
        let at = |time: &Option<String>| time.as_deref().map_or_else(|| "-".to_owned(), when);
        table.row([
            plain(&secret.kid),
            origin.to_owned(),
            duty.to_owned(),
            at(&secret.created_at),
            at(&secret.valid_until),
        ]);
    }
    table.render()
}
