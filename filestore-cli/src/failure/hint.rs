//! Hints for the user by error code. The hints are the same for both targets.

use filestore_client::{self as client, ErrorKind, TlsProblem};
use filestore_core::api::{ErrorCode as Code, KEY_SCOPES};

/// Returns the hint for an error code.
pub(super) fn of(code: &Code, field: Option<&str>, allowed: &[String]) -> Option<String> {
    let advice = match code {
        Code::InvalidField | Code::MissingField => {
            return field.and_then(by_field).or_else(|| listed(allowed));
        }
        Code::NotFound if field == Some("destination") => {
            "use a name from [[backup.destinations]] in the configuration, or a directory with a slash: ./NAME"
        }
        Code::NotFound if field == Some("webhook_id") => {
            "check the id with `filestore webhook list`"
        }
        Code::NotFound => {
            "check the id with `filestore list`. You cannot read a deleted file, or restore a purged file"
        }
        Code::Conflict => match field {
            // A migration must use the provider of the binding, and only one can run at a time.
            Some("to") => "to change the provider, use `filestore binding update --provider CODE`",
            Some("organizationId") => "to see the progress, use `filestore migrate status`",
            _ => "run the command again",
        },
        Code::AlreadyPurging => "the purge has started. Upload the file again if you still have it",

        Code::Unauthorized => "use a valid key with --key-file FILE or FILESTORE_KEY_FILE",
        Code::Forbidden => "use a key with the required scope and organization",
        Code::MisdirectedRequest => {
            "use the address of the server, or add this name to its `allowed_hosts`"
        }
        Code::PreconditionFailed => {
            "someone changed the file. Check it with `filestore info`, then try again with its new sha256"
        }

        Code::IdempotencyMismatch => {
            "use another --idempotency-key, or upload the same content as before"
        }
        Code::IdempotencyInProgress => {
            "wait until the other upload ends, then run the command again"
        }
        Code::DigestMismatch => {
            "compare with `sha256sum FILE`. The file might have changed during the upload"
        }

        Code::EventsGone => {
            "list the files again, then follow the events from now on, with `--after end`"
        }
        Code::EventsOff => {
            "set `enabled = true` in [events] of the configuration, then restart the server"
        }

        Code::UrlRefused => {
            "use an https:// URL with a public address, or see [webhooks] allow and allow_http of the configuration"
        }

        Code::BindingRequired => "bind the organization first: `filestore binding create --help`",
        Code::BindingAlreadyActive => {
            "change the binding with `filestore binding update`, or terminate it with --active false"
        }
        Code::NoActiveBinding => {
            "create a binding with `filestore binding create`. To see old bindings, use `filestore binding list`"
        }
        Code::UnknownProvider => {
            return listed(allowed).or_else(|| Some("see `filestore provider list`".to_owned()));
        }
        Code::NotAnImage | Code::ConversionFailed | Code::CorruptImage | Code::ImageTooLarge => {
            "to download the original file, use `filestore get`"
        }
        _ => return of_a_lack(code, field).map(str::to_owned).or_else(|| listed(allowed)),
    };

    Some(advice.to_owned())
}

/// Returns the hint for a missing, full or locked resource.
fn of_a_lack(code: &Code, field: Option<&str>) -> Option<&'static str> {
    Some(match code {
        Code::ProviderInactive => "choose a provider from `filestore provider list`",
        Code::ProviderUnavailable if field == Some("config") => {
            "name the server's configuration with --config FILE"
        }
        Code::ProviderUnavailable => "try again later, or check the provider's configuration",

        Code::TooLarge | Code::TooManyItems => {
            "split the upload, or raise the limit in the server's configuration"
        }
        Code::QuotaExceeded => {
            "delete files and run `filestore purge run --now --org ORG`, or raise the quota of the organization"
        }

        Code::Busy | Code::BodyTimeout | Code::UploadStalled | Code::TooManyUploads => {
            "try again later"
        }
        Code::UploadSuperseded => {
            "another program uploads the same file: wait until it ends, then run the command again"
        }
        Code::StorageFull if field == Some("destination") => {
            "free some space or use another destination, then run the command again"
        }
        Code::StorageFull => {
            "free some space: run `filestore delete`, then `filestore purge run --now`"
        }
        Code::DatabaseFull => "free some space on the disk of the database server",
        Code::OutcomeUnknown => "check whether the change succeeded before you try again",
        Code::Locked => "wait until the other command ends",
        _ => return None,
    })
}

/// Returns the hint for an error of a server.
pub(super) fn of_server(error: &client::Error) -> Option<String> {
    let Some(code) = error.code() else { return without_reply(error) };
    // The path of the URL is wrong, not the id.
    if *code == Code::NotFound && error.message() == NO_SUCH_PATH {
        let advice = "check the path in --server: use the URL of the server, without /api/v1";
        return Some(advice.to_owned());
    }
    let allowed = error.problem().map(|problem| problem.allowed.as_slice()).unwrap_or_default();
    of(code, error.field(), allowed)
}

/// The message of a server for a path that it does not have.
const NO_SUCH_PATH: &str = "no such path";

/// Returns the hint for a request without a reply.
fn without_reply(error: &client::Error) -> Option<String> {
    let advice = match error.kind() {
        ErrorKind::Connect if error.message().contains(AUTHORITY_AS_SERVER) => {
            "the server shows the certificate of an authority. Give the server its own certificate: with openssl, \
             add -addext basicConstraints=critical,CA:FALSE"
        }
        ErrorKind::Connect if error.tls_problem() == Some(TlsProblem::Certificate) => {
            "if the certificate is from a private authority, trust it with --ca-cert FILE"
        }
        ErrorKind::Connect if error.tls_problem() == Some(TlsProblem::NotTls) => {
            "use http:// in --server, or the port for TLS"
        }
        ErrorKind::Connect if error.tls_problem() == Some(TlsProblem::NotHttp) => {
            "use https:// in --server"
        }
        ErrorKind::Connect => {
            "start a server with `filestore-server`, name another server with --server, or use a data directory \
             with --data-dir"
        }
        ErrorKind::Timeout | ErrorKind::Interrupted | ErrorKind::Busy => "run the command again",
        ErrorKind::Protocol => {
            "check that --server is the URL of a filestore server, without /api/v1"
        }
        _ => return None,
    };

    Some(advice.to_owned())
}

/// The name of the problem in the message, if a server shows a certificate that is meant for an authority.
/// `openssl req -x509` creates such a certificate by default, and `--ca-cert` does not help.
const AUTHORITY_AS_SERVER: &str = "CaUsedAsEndEntity";

fn by_field(field: &str) -> Option<String> {
    // A batch item has fields like `items[3].original_name`.
    let field = field.rsplit('.').next().unwrap_or(field);
    if field == "scopes" {
        return Some(format!("--scope needs one of: {}", KEY_SCOPES.join(", ")));
    }

    let advice = match field {
        "organization_id" => {
            "--org needs 1 to 64 letters, digits, _ and -. A number has no leading zeros"
        }
        "sub_system" => {
            "--sub needs 1 to 64 letters, digits, . _ and -, and starts with a letter or digit"
        }
        "original_name" | "organizationName" => {
            "--name needs at least one character and no control characters"
        }
        "expires_in_s" => {
            "--expires-in needs a time such as 600, 10m or 7d, up to the limit in the error"
        }
        "organizations" => "--org needs the id of an organization, or only '*' for all",
        "name" => "--name needs 1 to 255 characters and no control characters",
        "key_id" => {
            "an id has 26 upper-case letters and digits. To see all ids, use `filestore key list`"
        }
        "overlap_s" => "--overlap needs a time such as 600, 10m or 1h, up to 30d",
        "mime_type" => "--type needs a media type, for example image/jpeg",
        "sha256" => "--sha256 needs 64 hexadecimal digits, for example from `sha256sum FILE`",
        "file_id" => {
            "an id has 26 upper-case letters and digits. To see all ids, use `filestore list`"
        }
        "organizationId" => "--org needs a whole number from 1 to 9007199254740991",
        "webhook_id" => {
            "an id has 26 upper-case letters and digits. To see all ids, use `filestore webhook list`"
        }
        "limit" => "--limit needs 1 to 1000. To see all, use --all",
        "cursor" => "use a cursor only with the filters of its own list",
        "Idempotency-Key" => "--idempotency-key needs 1 to 255 printable ASCII characters",
        _ => return None,
    };

    Some(advice.to_owned())
}

fn listed(allowed: &[String]) -> Option<String> {
    (!allowed.is_empty()).then(|| format!("allowed: {}", allowed.join(", ")))
}
